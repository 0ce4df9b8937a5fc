// What every Communicator promises, over all means, against the reference.
#include "collectives/core/communicator.h"

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/cpu/transport_communicator.h"
#include "collectives/reference/reference.h"
#include "collectives/transport/inproc/inproc_transport.h"
#include "gtest/gtest.h"
#include "tests/conformance/worlds.h"
#include "tools/base/mutex.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

using reference::Bytes;
using ::testing::HasSubstr;

// Little data must make many chunks, and take the long ways.
constexpr TransportCommunicator::Options kSmallChunks{.chunk_bytes = 256, .short_bytes = 64};

// Rank r's input of a case: the same whoever asks. Numbers of a size at which every operation of up to seven ranks
// stays in the type's range; halves where the type has them, so sums are exact, and a few that are not.
Bytes InputOf(DType dtype, int64_t count, Rank rank) {
  Prng prng(1000 * count + 10 * rank + static_cast<int>(dtype));
  std::vector<long double> values;
  const bool is_integer = dtype == DType::kUint8 || dtype == DType::kInt32 || dtype == DType::kInt64;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t small = static_cast<int64_t>(prng.Below(5));
    if (dtype == DType::kUint8) {
      values.push_back(small);
    } else if (is_integer) {
      values.push_back(small - 2);
    } else {
      values.push_back(i % 3 == 0 ? static_cast<long double>(small - 2) / 2 : 3 * prng.Unit() - 1.5);
    }
  }
  return reference::EncodeAll(dtype, values);
}

std::vector<Bytes> InputsOf(int size, DType dtype, int64_t count) {
  std::vector<Bytes> inputs;
  for (Rank rank = 0; rank < size; ++rank) inputs.push_back(InputOf(dtype, count, rank));
  return inputs;
}

class CommunicatorTest : public ::testing::TestWithParam<std::tuple<Means, int>> {
 protected:
  CommunicatorTest() : size_(std::get<1>(GetParam())), world_(MakeWorld(std::get<0>(GetParam()), size_)) {}

  std::unique_ptr<Communicator> Make(Rank rank, TransportCommunicator::Options options = kSmallChunks) {
    return std::make_unique<TransportCommunicator>(world_->MakeTransport(rank), options);
  }

  const int size_;
  const std::unique_ptr<World> world_;
};

TEST_P(CommunicatorTest, AllReduceAgreesWithTheReferenceForEveryTypeOperationAndCount) {
  std::vector<std::map<std::string, Bytes>> outputs(size_);
  const std::vector<int64_t> counts = {0, 1, size_ - 1, 2 * size_ + 1, 33, 700};
  OnAllRanks(size_, [&](Rank rank) {
    const auto communicator = Make(rank);
    for (DType dtype : kDTypes) {
      for (ReduceOp op : kReduceOps) {
      if (op == ReduceOp::kAdasum || !Combines(dtype, op)) continue;
        for (int64_t count : counts) {
          const Bytes input = InputOf(dtype, count, rank);
          Bytes kept = input;
          Bytes output(input.size());
          Bytes in_place = input;
          ASSERT_OK(communicator->AllReduce(kept.data(), output.data(), count, dtype, op, Eventually()));
          ASSERT_OK(communicator->AllReduce(in_place.data(), in_place.data(), count, dtype, op, Eventually()));
          EXPECT_EQ(kept, input) << "the input was written to";
          EXPECT_EQ(in_place, output);
          outputs[rank][absl::StrCat(Name(dtype), " ", Name(op), " x ", count)] = output;
        }
      }
    }
  });
  for (DType dtype : kDTypes) {
    for (ReduceOp op : kReduceOps) {
      if (op == ReduceOp::kAdasum || !Combines(dtype, op)) continue;
      for (int64_t count : counts) {
        const std::string name = absl::StrCat(Name(dtype), " ", Name(op), " x ", count);
        EXPECT_EQ(reference::AllReduceMismatch(InputsOf(size_, dtype, count), dtype, op, outputs[0][name]),
                  absl::nullopt)
            << name;
        for (Rank rank = 1; rank < size_; ++rank) {
          EXPECT_EQ(outputs[rank][name], outputs[0][name]) << name << ": rank " << rank << " has other bytes";
        }
      }
    }
  }
}

TEST_P(CommunicatorTest, AllGatherTakesUnevenCountsAndInputsInTheirOwnPlace) {
  // All empty; few bytes; several chunks; one that has nearly all.
  const std::vector<std::vector<int64_t>> cases = {
      {0, 0, 0, 0, 0, 0, 0}, {1, 0, 3, 2, 5, 0, 1}, {300, 700, 1, 0, 257, 999, 4}, {0, 100'000, 1, 0, 0, 0, 7}};
  OnAllRanks(size_, [&](Rank rank) {
    const auto communicator = Make(rank);
    for (const std::vector<int64_t>& all : cases) {
      const std::vector<int64_t> bytes(all.begin(), all.begin() + size_);
      std::vector<Bytes> inputs;
      for (Rank r = 0; r < size_; ++r) inputs.push_back(InputOf(DType::kUint8, bytes[r], r));
      const Bytes expected = reference::AllGather(inputs);
      Bytes output(expected.size());
      EXPECT_OK(communicator->AllGather(inputs[rank], absl::MakeSpan(output), bytes, Eventually()));
      EXPECT_EQ(output, expected);
      Bytes in_place(expected.size());
      const int64_t begin = std::accumulate(bytes.begin(), bytes.begin() + rank, int64_t{0});
      std::copy(inputs[rank].begin(), inputs[rank].end(), in_place.begin() + begin);
      const auto own = absl::MakeConstSpan(in_place).subspan(begin, bytes[rank]);
      EXPECT_OK(communicator->AllGather(own, absl::MakeSpan(in_place), bytes, Eventually()));
      EXPECT_EQ(in_place, expected);
    }
  });
}

TEST_P(CommunicatorTest, BroadcastFromEveryRootInEveryLength) {
  OnAllRanks(size_, [&](Rank rank) {
    const auto communicator = Make(rank);
    for (Rank root = 0; root < size_; ++root) {
      for (int64_t bytes : {0, 1, 64, 65, 256, 257, 5000}) {
        Bytes data = InputOf(DType::kUint8, bytes, rank);
        EXPECT_OK(communicator->Broadcast(absl::MakeSpan(data), root, Eventually()));
        EXPECT_EQ(data, InputOf(DType::kUint8, bytes, root)) << "root " << root << ", " << bytes << " bytes";
      }
    }
  });
}

TEST_P(CommunicatorTest, NobodyLeavesABarrierBeforeAllHaveCome) {
  Mutex mutex;
  int arrived = 0;
  OnAllRanks(size_, [&](Rank rank) {
    const auto communicator = Make(rank);
    for (int round = 1; round <= 20; ++round) {
      {
        MutexLock lock(&mutex);
        ++arrived;
      }
      EXPECT_OK(communicator->Barrier(Eventually()));
      MutexLock lock(&mutex);
      EXPECT_GE(arrived, round * size_);
    }
  });
}

TEST_P(CommunicatorTest, LongTensorsInChunksOfTheDefaultSize) {
  constexpr int64_t kCount = (3 << 20) / 4 + 1;
  OnAllRanks(size_, [&](Rank rank) {
    const auto communicator = Make(rank, TransportCommunicator::Options());
    std::vector<float> values(kCount);
    for (int64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 1000 + rank);
    std::vector<float> sum(kCount);
    EXPECT_OK(
        communicator->AllReduce(values.data(), sum.data(), kCount, DType::kFloat32, ReduceOp::kSum, Eventually()));
    int64_t wrong = 0;
    const float ranks = static_cast<float>(size_ * (size_ - 1) / 2);
    for (int64_t i = 0; i < kCount; ++i) wrong += sum[i] != static_cast<float>(size_ * (i % 1000)) + ranks;
    EXPECT_EQ(wrong, 0);
    Bytes data(1 << 20, static_cast<std::byte>(rank));
    EXPECT_OK(communicator->Broadcast(absl::MakeSpan(data), size_ - 1, Eventually()));
    EXPECT_EQ(data, Bytes(1 << 20, static_cast<std::byte>(size_ - 1)));
  });
}

TEST_P(CommunicatorTest, OwnWrongArgumentsAreRefusedAndDoNoHarm) {
  OnAllRanks(size_, [&](Rank rank) {
    const auto communicator = Make(rank);
    EXPECT_EQ(communicator->rank(), rank);
    EXPECT_EQ(communicator->size(), size_);
    Bytes data(8);
    const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(communicator->AllReduce(nullptr, data.data(), 1, DType::kInt32, ReduceOp::kSum, Eventually()), invalid);
    EXPECT_THAT(communicator->AllReduce(data.data(), data.data(), -1, DType::kInt32, ReduceOp::kSum, Eventually()),
                invalid);
    EXPECT_THAT(
        communicator->AllReduce(data.data(), data.data(), INT64_MAX / 2, DType::kInt64, ReduceOp::kSum, Eventually()),
        invalid);
    EXPECT_THAT(communicator->Broadcast(absl::MakeSpan(data), size_, Eventually()), invalid);
    EXPECT_THAT(communicator->Broadcast(absl::MakeSpan(data), -1, Eventually()), invalid);
    EXPECT_THAT(communicator->AllGather(data, absl::MakeSpan(data), std::vector<int64_t>(size_ + 1, 8), Eventually()),
                invalid);
    EXPECT_THAT(communicator->AllGather(data, absl::MakeSpan(data), std::vector<int64_t>(size_, 7), Eventually()),
                invalid);
    EXPECT_OK(communicator->Barrier(Eventually()));
  });
}

INSTANTIATE_TEST_SUITE_P(, CommunicatorTest,
                         ::testing::Combine(::testing::ValuesIn(kAllMeans), ::testing::Values(1, 2, 3, 4, 5, 7)),
                         [](const auto& info) {
                           return absl::StrCat(Name(std::get<0>(info.param)), "_", std::get<1>(info.param));
                         });

class CommunicatorFailureTest : public ::testing::TestWithParam<Means> {};

TEST_P(CommunicatorFailureTest, AbortEndsABlockedCollectivePromptlyAndAllLaterOnes) {
  const auto world = MakeWorld(GetParam(), 3);
  TransportCommunicator communicator(world->MakeTransport(0));
  const auto one = world->MakeTransport(1);
  const auto two = world->MakeTransport(2);
  std::vector<float> values(1 << 20);
  absl::Status status;
  BlockedThread thread([&] {
    status = communicator.AllReduce(values.data(), values.data(), values.size(), DType::kFloat32, ReduceOp::kSum,
                                    Instant::Infinite());
  });
  thread.AwaitAsleep();
  communicator.Abort("generation 4 begins");
  thread.Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, "generation 4 begins"));
  EXPECT_THAT(communicator.Barrier(Eventually()), StatusIs(absl::StatusCode::kCancelled, "generation 4 begins"));
}

TEST_P(CommunicatorFailureTest, AMemberThatLeavesIsNamedByTheRankThatWaitsForIt) {
  constexpr int kSize = 3;
  const auto world = MakeWorld(GetParam(), kSize);
  std::vector<absl::Status> statuses(kSize);
  OnAllRanks(kSize, [&](Rank rank) {
    TransportCommunicator communicator(world->MakeTransport(rank));
    std::vector<float> values(1 << 20);
    auto reduce = [&] {
      return communicator.AllReduce(values.data(), values.data(), values.size(), DType::kFloat32, ReduceOp::kSum,
                                    Eventually());
    };
    statuses[rank] = reduce();
    if (rank == 2 || !statuses[rank].ok()) return;  // rank 2 leaves
    statuses[rank] = reduce();
  });
  EXPECT_OK(statuses[2]);
  // Rank 0 receives from rank 2, rank 1 sends to it. Which of the two notices first, and ends, is not the same every
  // time; the first one has seen it right.
  const std::string lost = Describe(world->spec(0), 2);
  const bool first_is_zero = std::string(statuses[0].message()).find(lost) != std::string::npos;
  EXPECT_THAT(statuses[first_is_zero ? 0 : 1], StatusIs(absl::StatusCode::kUnavailable, HasSubstr(lost)));
  EXPECT_THAT(statuses[first_is_zero ? 1 : 0], StatusIs(absl::StatusCode::kUnavailable));
}

TEST_P(CommunicatorFailureTest, RanksThatCallDifferentCollectivesAreTold) {
  const auto world = MakeWorld(GetParam(), 2);
  std::vector<absl::Status> statuses(2);
  const auto zero = std::make_unique<TransportCommunicator>(world->MakeTransport(0));
  const auto one = std::make_unique<TransportCommunicator>(world->MakeTransport(1));
  OnAllRanks(2, [&](Rank rank) {
    std::vector<int32_t> values(4);
    Communicator& communicator = rank == 0 ? *zero : *one;
    ASSERT_OK(communicator.Barrier(Eventually()));  // links are there, so each sends before it notices
    const ReduceOp op = ReduceOp::kSum;
    statuses[rank] = rank == 0
                         ? communicator.Barrier(Eventually())
                         : communicator.AllReduce(values.data(), values.data(), 4, DType::kInt32, op, Eventually());
  });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("different collectives")));
  }
}

TEST_P(CommunicatorFailureTest, RanksThatDisagreeAboutTheLengthAreTold) {
  const auto world = MakeWorld(GetParam(), 2);
  const auto zero = std::make_unique<TransportCommunicator>(world->MakeTransport(0));
  const auto one = std::make_unique<TransportCommunicator>(world->MakeTransport(1));
  std::vector<absl::Status> statuses(2);
  OnAllRanks(2, [&](Rank rank) {
    std::vector<int32_t> values(5);
    Communicator& communicator = rank == 0 ? *zero : *one;
    ASSERT_OK(communicator.Barrier(Eventually()));  // links are there, so each sends before it notices
    statuses[rank] =
        communicator.AllReduce(values.data(), values.data(), 4 + rank, DType::kInt32, ReduceOp::kSum, Eventually());
  });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("different collectives")));
  }
}

TEST_P(CommunicatorFailureTest, ADeadlineEndsACollectiveThatNotAllHaveCalled) {
  const auto world = MakeWorld(GetParam(), 2);
  TransportCommunicator communicator(world->MakeTransport(0));
  const auto one = world->MakeTransport(1);
  EXPECT_THAT(communicator.Barrier(Now() + absl::Milliseconds(2)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(Describe(world->spec(0), 1))));
  EXPECT_THAT(communicator.Barrier(Eventually()), StatusIs(absl::StatusCode::kFailedPrecondition));
}

INSTANTIATE_TEST_SUITE_P(, CommunicatorFailureTest, ::testing::ValuesIn(kAllMeans),
                         [](const auto& info) { return Name(info.param); });

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
      TransportCommunicator communicator(group.Join(rank), kSmallChunks);
      std::vector<int32_t> values(kCount, rank + 1);
      statuses[rank] =
          communicator.AllReduce(values.data(), values.data(), kCount, DType::kInt32, ReduceOp::kSum, Eventually());
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
  TransportCommunicator zero(group.Join(0));
  TransportCommunicator one(group.Join(1));
  std::vector<int32_t> sums = {1, 2};
  BlockedThread blocked(
      [&] { EXPECT_OK(zero.AllReduce(&sums[0], &sums[0], 1, DType::kInt32, ReduceOp::kSum, Eventually())); });
  EXPECT_OK(one.AllReduce(&sums[1], &sums[1], 1, DType::kInt32, ReduceOp::kSum, Eventually()));
  EXPECT_EQ(sums[1], 3);
  blocked.AwaitAsleep();
  EXPECT_EQ(sums[0], 1);
  group.Resume(1);
  blocked.Join();
  EXPECT_EQ(sums[0], 3);
}

}  // namespace
}  // namespace farandole::testing
