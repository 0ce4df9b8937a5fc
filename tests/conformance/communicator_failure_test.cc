// How every Communicator fails, over all means.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "collectives/core/communicator.h"
#include "collectives/reference/reference.h"
#include "gtest/gtest.h"
#include "tests/conformance/communicator_cases.h"
#include "tests/conformance/worlds.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

using reference::Bytes;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class FailureTest : public ::testing::TestWithParam<Means> {
 protected:
  // A group whose links are there: one barrier has been.
  void MakeGroup(int size) {
    communicators_.clear();  // before what they were made of
    world_ = MakeWorld(GetParam(), size);
    communicators_.resize(static_cast<size_t>(size));
    OnAllRanks(size, [&](Rank rank) {
      communicators_[rank] = world_->MakeCommunicator(rank);
      ASSERT_OK(communicators_[rank]->Barrier(Eventually()));
    });
  }

  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

class FailingOperationTest : public ::testing::TestWithParam<std::tuple<Means, Operation>> {};

// Rank 0 waits for rank 2, which never comes.
TEST_P(FailingOperationTest, AbortEndsItPromptlyAndAllLaterOnes) {
  const auto [means, operation] = GetParam();
  const auto world = MakeWorld(means, 3);
  std::vector<std::unique_ptr<Communicator>> communicators(3);
  OnAllRanks(3, [&](Rank rank) { communicators[rank] = world->MakeCommunicator(rank); });
  const Case what = LongCase(operation, 3, 2);
  absl::Status status;
  BlockedThread thread([&] { status = RunCase(*communicators[0], what, Instant::Infinite()).status(); });
  thread.AwaitAsleep();
  communicators[0]->Abort("generation 4 begins");
  communicators[0]->Abort("another reason");
  thread.Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, "generation 4 begins"));
  for (Operation later : kOperations) {
    EXPECT_THAT(RunCase(*communicators[0], LongCase(later, 3, 2), Eventually()).status(),
                StatusIs(absl::StatusCode::kCancelled, "generation 4 begins"))
        << later;
  }
}

TEST_P(FailingOperationTest, AbortBeforeItIsSeenByIt) {
  const auto [means, operation] = GetParam();
  const auto world = MakeWorld(means, 2);
  std::vector<std::unique_ptr<Communicator>> communicators(2);
  OnAllRanks(2, [&](Rank rank) { communicators[rank] = world->MakeCommunicator(rank); });
  communicators[0]->Abort("too late");
  EXPECT_THAT(RunCase(*communicators[0], LongCase(operation, 2, 1), Eventually()).status(),
              StatusIs(absl::StatusCode::kCancelled, "too late"));
}

// Rank 2 leaves after one of them. Each of the others waits for it, or for one that does.
TEST_P(FailingOperationTest, AMemberThatLeavesIsNamedByTheOneThatNoticesFirst) {
  const auto [means, operation] = GetParam();
  constexpr int kSize = 3;
  const auto world = MakeWorld(means, kSize);
  const Case what = LongCase(operation, kSize, 2);
  std::vector<absl::Status> statuses(kSize);
  OnAllRanks(kSize, [&, operation = operation](Rank rank) {
    const auto communicator = world->MakeCommunicator(rank);
    statuses[rank] = RunCase(*communicator, what, Eventually()).status();
    if (rank == 2 || !statuses[rank].ok()) return;
    if (operation == Operation::kSendReceive && rank == 1) return;  // has no part in it
    statuses[rank] = RunCase(*communicator, what, Eventually()).status();
  });
  EXPECT_OK(statuses[2]);
  const std::string lost = Describe(world->spec(0), 2);
  bool named = false;
  for (Rank rank = 0; rank < 2; ++rank) {
    if (operation == Operation::kSendReceive && rank == 1) continue;
    EXPECT_THAT(statuses[rank], StatusIs(absl::StatusCode::kUnavailable)) << "rank " << rank;
    named = named || absl::StrContains(std::string(statuses[rank].message()), lost);
  }
  EXPECT_TRUE(named) << lost << ": " << statuses[0] << "; " << statuses[1];
}

TEST_P(FailingOperationTest, ADeadlineEndsItIfNotAllHaveCalled) {
  const auto [means, operation] = GetParam();
  const auto world = MakeWorld(means, 2);
  std::vector<std::unique_ptr<Communicator>> communicators(2);
  OnAllRanks(2, [&](Rank rank) { communicators[rank] = world->MakeCommunicator(rank); });
  ASSERT_THAT(RunCase(*communicators[0], LongCase(operation, 2, 1), Now() + absl::Milliseconds(20)).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(Describe(world->spec(0), 1))));
  EXPECT_THAT(communicators[0]->Barrier(Eventually()), StatusIs(absl::StatusCode::kFailedPrecondition));
}

INSTANTIATE_TEST_SUITE_P(, FailingOperationTest,
                         ::testing::Combine(::testing::ValuesIn(kCommunicatorMeans), ::testing::ValuesIn(kOperations)),
                         [](const auto& info) {
                           return absl::StrCat(Name(std::get<0>(info.param)), "_", Name(std::get<1>(info.param)));
                         });

// At least one rank notices by itself; the other one may only see that it is gone.
TEST_P(FailureTest, RanksThatCallDifferentCollectivesAreTold) {
  const Operation waiting[] = {Operation::kAllReduce, Operation::kAdasum,   Operation::kReduceScatter,
                               Operation::kAllGather, Operation::kAllToAll, Operation::kBarrier};
  for (Operation one : waiting) {
    for (Operation other : waiting) {
      if (one >= other) continue;
      SCOPED_TRACE(absl::StrCat(Name(one), " and ", Name(other)));
      MakeGroup(2);
      std::vector<absl::Status> statuses(2);
      OnAllRanks(2, [&](Rank rank) {
        Case what = LongCase(rank == 0 ? one : other, 2, 0);
        for (int64_t& count : what.counts) count = 5;
        statuses[rank] = RunCase(*communicators_[rank], what, Eventually()).status();
        if (!statuses[rank].ok()) communicators_[rank].reset();
      });
      int told = 0;
      for (const absl::Status& status : statuses) {
        EXPECT_THAT(status, AnyOf(StatusIs(absl::StatusCode::kInternal, HasSubstr("different collectives")),
                                  StatusIs(absl::StatusCode::kUnavailable)));
        told += absl::IsInternal(status);
      }
      EXPECT_GE(told, 1) << statuses[0] << "; " << statuses[1];
    }
  }
}

TEST_P(FailureTest, RanksThatDisagreeAboutTheLengthAreTold) {
  for (int64_t count : {4, 100'000}) {
    MakeGroup(2);
    std::vector<absl::Status> statuses(2);
    OnAllRanks(2, [&](Rank rank) {
      Case what = LongCase(Operation::kAllReduce, 2, 0);
      what.counts = {count + rank};
      statuses[rank] = RunCase(*communicators_[rank], what, Eventually()).status();
      if (!statuses[rank].ok()) communicators_[rank].reset();
    });
    int told = 0;
    for (const absl::Status& status : statuses) {
      EXPECT_THAT(status, AnyOf(StatusIs(absl::StatusCode::kInternal, HasSubstr("different collectives")),
                                StatusIs(absl::StatusCode::kUnavailable)));
      told += absl::IsInternal(status);
    }
    EXPECT_GE(told, 1) << count << ": " << statuses[0] << "; " << statuses[1];
  }
}

TEST_P(FailureTest, OwnWrongArgumentsAreRefusedAndDoNoHarm) {
  for (int size : {1, 2, 3}) {
    MakeGroup(size);
    OnAllRanks(size, [&](Rank rank) {
      Communicator& communicator = *communicators_[rank];
      const Instant deadline = Eventually();
      const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
      const std::vector<int64_t> eights(static_cast<size_t>(size), 8);
      Bytes data(static_cast<size_t>(8 * size));
      Bytes other(data.size());
      auto allreduce = [&](const void* input, int64_t count, DType dtype, ReduceOp op) {
        return communicator.AllReduce(input, data.data(), count, dtype, op, deadline);
      };
      EXPECT_THAT(allreduce(nullptr, 1, DType::kInt32, ReduceOp::kSum), invalid);
      EXPECT_THAT(allreduce(data.data(), -1, DType::kInt32, ReduceOp::kSum), invalid);
      EXPECT_THAT(allreduce(data.data(), INT64_MAX / 2, DType::kInt64, ReduceOp::kSum), invalid);
      EXPECT_THAT(allreduce(data.data(), 1, DType::kBool, ReduceOp::kAverage), invalid);
      EXPECT_THAT(allreduce(data.data(), 1, DType::kInt64, ReduceOp::kAdasum), invalid);
      EXPECT_THAT(communicator.Adasum(data.data(), {1}, DType::kInt32, deadline), invalid);
      EXPECT_THAT(communicator.Adasum(data.data(), {1, -1}, DType::kFloat32, deadline), invalid);
      EXPECT_THAT(communicator.Adasum(nullptr, {1}, DType::kFloat32, deadline), invalid);
      auto reduce_scatter = [&](std::vector<int64_t> counts, DType dtype, ReduceOp op) {
        return communicator.ReduceScatter(data.data(), other.data(), counts, dtype, op, deadline);
      };
      const std::vector<int64_t> ones(static_cast<size_t>(size), 1);
      EXPECT_THAT(reduce_scatter(ones, DType::kFloat32, ReduceOp::kAdasum), invalid);
      EXPECT_THAT(reduce_scatter(ones, DType::kBool, ReduceOp::kAverage), invalid);
      EXPECT_THAT(reduce_scatter(std::vector<int64_t>(static_cast<size_t>(size) + 1, 1), DType::kInt8, ReduceOp::kSum),
                  invalid);
      EXPECT_THAT(reduce_scatter(std::vector<int64_t>(static_cast<size_t>(size), -1), DType::kInt8, ReduceOp::kSum),
                  invalid);
      auto broadcast = [&](Rank root) { return communicator.Broadcast(absl::MakeSpan(data), root, deadline); };
      EXPECT_THAT(broadcast(size), invalid);
      EXPECT_THAT(broadcast(-1), invalid);
      const auto own = absl::MakeConstSpan(other).subspan(0, 8);
      EXPECT_THAT(communicator.AllGather(own, absl::MakeSpan(data),
                                         std::vector<int64_t>(static_cast<size_t>(size) + 1, 8), deadline),
                  invalid);
      EXPECT_THAT(communicator.AllGather(own, absl::MakeSpan(data), std::vector<int64_t>(static_cast<size_t>(size), 7),
                                         deadline),
                  invalid);
      auto exchange = [&](std::vector<int64_t> to, std::vector<int64_t> from) {
        return communicator.AllToAll(other, to, absl::MakeSpan(data), from, deadline);
      };
      std::vector<int64_t> odd = eights;
      odd[0] = 7;
      EXPECT_THAT(exchange(odd, eights), invalid);
      EXPECT_THAT(exchange(eights, odd), invalid);
      EXPECT_THAT(exchange(std::vector<int64_t>(static_cast<size_t>(size) + 1, 0), eights), invalid);
      EXPECT_THAT(communicator.Send(data, rank, deadline), invalid) << "to itself";
      EXPECT_THAT(communicator.Send(data, size, deadline), invalid);
      EXPECT_THAT(communicator.Receive(absl::MakeSpan(data), rank, deadline), invalid) << "from itself";
      EXPECT_THAT(communicator.Receive(absl::MakeSpan(data), -1, deadline), invalid);
      EXPECT_OK(communicator.Barrier(Eventually())) << "unharmed";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(, FailureTest, ::testing::ValuesIn(kCommunicatorMeans),
                         [](const auto& info) { return Name(info.param); });

}  // namespace
}  // namespace farandole::testing
