// What the communicator over any transport makes of the faults that inproc can be told to have.
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/core/communicator.h"
#include "collectives/core/tuning.h"
#include "collectives/transport/inproc/inproc_transport.h"
#include "gtest/gtest.h"
#include "tests/conformance/worlds.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

using ::testing::HasSubstr;

// The scripted faults of inproc: the link of one rank ends after each number of messages that it sends.
TEST(CommunicatorScriptTest, ALinkThatEndsAtAnyMessageEndsInOneOfTwoWaysOnEveryRank) {
  constexpr int kSize = 3;
  constexpr int64_t kCount = 1000;
  int finished = 0;
  for (int64_t messages = 1; messages <= 40; ++messages) {
    InprocTransportGroup group(kSize);
    group.CutLinks(1, messages);
    std::vector<absl::Status> statuses(kSize);
    OnAllRanks(kSize, [&](Rank rank) {
      const auto communicator = MakeTransportCommunicator(group.Join(rank));
      communicator->Tune({.allreduce = Algorithm::kRing, .chunk_bytes = 256});
      std::vector<int32_t> values(kCount, rank + 1);
      statuses[rank] =
          communicator->AllReduce(values.data(), values.data(), kCount, DType::kInt32, ReduceOp::kSum, Eventually());
      if (statuses[rank].ok()) {
        EXPECT_EQ(values, std::vector<int32_t>(kCount, 6)) << "success, but wrong";
      } else {
        EXPECT_THAT(statuses[rank], StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost rank ")));
      }
    });
    finished += statuses[0].ok() && statuses[1].ok() && statuses[2].ok();
  }
  EXPECT_GT(finished, 0) << "all messages of a whole allreduce were not enough";
  EXPECT_LT(finished, 40) << "no cut did harm";
}

TEST(CommunicatorScriptTest, AStalledRankHoldsTheOthersUpAndNothingIsLost) {
  InprocTransportGroup group(2);
  group.Stall(1);
  const auto zero = MakeTransportCommunicator(group.Join(0));
  const auto one = MakeTransportCommunicator(group.Join(1));
  std::vector<int32_t> sums = {1, 2};
  BlockedThread blocked(
      [&] { EXPECT_OK(zero->AllReduce(&sums[0], &sums[0], 1, DType::kInt32, ReduceOp::kSum, Eventually())); });
  EXPECT_OK(one->AllReduce(&sums[1], &sums[1], 1, DType::kInt32, ReduceOp::kSum, Eventually()));
  EXPECT_EQ(sums[1], 3);
  blocked.AwaitAsleep();
  EXPECT_EQ(sums[0], 1);
  group.Resume(1);
  blocked.Join();
  EXPECT_EQ(sums[0], 3);
}

}  // namespace
}  // namespace farandole::testing
