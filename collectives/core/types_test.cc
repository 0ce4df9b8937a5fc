#include "collectives/core/types.h"

#include "collectives/core/group.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

TEST(Types, NumbersComeBackAsWhatTheyWereAndOthersAreRefused) {
  int known = 0;
  for (int number = -1; number < 256; ++number) {
    if (const auto dtype = DTypeFromNumber(number)) {
      ++known;
      EXPECT_EQ(static_cast<int>(*dtype), number);
      EXPECT_GT(SizeOf(*dtype), 0);
      EXPECT_NE(Name(*dtype), "unknown");
    }
    if (const auto op = ReduceOpFromNumber(number)) {
      EXPECT_EQ(static_cast<int>(*op), number);
    }
  }
  EXPECT_EQ(known, 11);
  EXPECT_FALSE(ReduceOpFromNumber(6).has_value());
}

TEST(Group, MessagesNameRankAndHost) {
  GroupSpec spec;
  spec.members.resize(2);
  spec.members[1].host = "gpu7";
  EXPECT_EQ(Describe(spec, 1), "rank 1 on host gpu7");
  EXPECT_EQ(Describe(spec, 5), "rank 5");
}

}  // namespace
}  // namespace farandole
