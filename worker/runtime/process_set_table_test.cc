#include "worker/runtime/process_set_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ProcessSetTable, NumbersCountUpAndFreeOnesAreUsedAgainTheOldestFirst) {
  ProcessSetTable table(4);
  EXPECT_THAT(table.Find(0)->ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(table.Add({0, 1}), 1);
  EXPECT_EQ(table.Add({1, 2}), 2);
  EXPECT_EQ(table.Add({2, 3}), 3);
  table.Remove(2);
  table.Remove(1);
  EXPECT_EQ(table.Add({0}), 2);
  EXPECT_EQ(table.Add({1}), 1);
  EXPECT_EQ(table.Add({2}), 4);
  EXPECT_THAT(table.ids(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(table.Find(2)->group, 4u) << "a group's number is never used twice";
}

TEST(ProcessSetTable, RefusesWhatMakesNoSet) {
  ProcessSetTable table(3);
  ASSERT_OK_AND_ASSIGN(const std::vector<Rank> sorted, table.Check({2, 0}));
  EXPECT_THAT(sorted, ElementsAre(0, 2));
  table.Add(sorted);
  const auto refused = [](const char* words) { return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)); };
  EXPECT_THAT(table.Check({}), refused("at least one"));
  EXPECT_THAT(table.Check({1, 1}), refused("one twice"));
  EXPECT_THAT(table.Check({1, 3}), refused("only ranks 0 to 2"));
  EXPECT_THAT(table.Check({-1}), refused("only ranks 0 to 2"));
  EXPECT_THAT(table.Check({2, 0}), refused("duplicate process set: ranks 0, 2 are process set 1"));
  EXPECT_THAT(table.Check({0, 1, 2}), refused("duplicate"));
  EXPECT_THAT(table.CheckRemovable(0), refused("cannot be removed"));
  EXPECT_THAT(table.CheckRemovable(2), refused("no process set 2"));
}

TEST(ProcessSetTable, PlaceAmongItsRanks) {
  EXPECT_EQ(PlaceIn({1, 4, 6}, 4), 1);
  EXPECT_EQ(PlaceIn({1, 4, 6}, 5), absl::nullopt);
}

}  // namespace
}  // namespace farandole
