// What every Communicator computes, over all means, against the reference.
#include "collectives/core/communicator.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/core/tuning.h"
#include "collectives/reference/reference.h"
#include "gtest/gtest.h"
#include "tests/conformance/communicator_cases.h"
#include "tests/conformance/worlds.h"
#include "tools/base/mutex.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

using reference::Bytes;

constexpr int kSizes[] = {1, 2, 3, 5, 7, 8};

// A case, and how to work from it on.
struct Step {
  Case what;
  CollectiveTuning tuning;
};

class Group {
 public:
  Group(Means means, int size) : size_(size), world_(MakeWorld(means, size)) {}

  // All steps one after the other on the same communicators; each result is compared with the reference.
  void ExpectRight(const std::vector<Step>& steps) {
    std::vector<std::vector<Bytes>> outputs(steps.size(), std::vector<Bytes>(static_cast<size_t>(size_)));
    OnAllRanks(size_, [&](Rank rank) {
      const auto communicator = world_->MakeCommunicator(rank);
      ASSERT_EQ(communicator->rank(), rank);
      ASSERT_EQ(communicator->size(), size_);
      for (size_t i = 0; i < steps.size(); ++i) {
        communicator->Tune(steps[i].tuning);
        auto output = RunCase(*communicator, steps[i].what, Eventually());
        ASSERT_OK(output) << "rank " << rank << ", step " << i << ": " << Describe(steps[i].what);
        outputs[i][rank] = *std::move(output);
      }
    });
    if (::testing::Test::HasFailure()) return;
    for (size_t i = 0; i < steps.size(); ++i) {
      const absl::optional<std::string> mismatch = Mismatch(steps[i].what, outputs[i]);
      ASSERT_FALSE(mismatch.has_value()) << *mismatch << "\nstep " << i << " with " << Name(steps[i].tuning.allreduce)
                                         << ": " << Describe(steps[i].what);
    }
  }

 private:
  const int size_;
  const std::unique_ptr<World> world_;
};

// Drawn anew by --test_env=FARANDOLE_TEST_SEED=N.
uint64_t Seed() {
  const char* const text = std::getenv("FARANDOLE_TEST_SEED");
  uint64_t seed = 1;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &seed)) << text;
  }
  return seed;
}

class OperationTest : public ::testing::TestWithParam<std::tuple<Means, int, Operation>> {};

TEST_P(OperationTest, OfEveryTypeAndShape) {
  const auto [means, size, operation] = GetParam();
  std::vector<Step> steps;
  for (Case& what : EveryCase(size)) {
    if (what.operation == operation) steps.push_back({std::move(what), {}});
  }
  Group(means, size).ExpectRight(steps);
}

TEST_P(OperationTest, OfLongTensors) {
  const auto [means, size, operation] = GetParam();
  if (operation == Operation::kSendReceive && size == 1) return;
  const Case what = LongCase(operation, size, size - 1);
  Case small_chunks = what;
  small_chunks.misalignment = 1;
  small_chunks.in_place = true;
  Group(means, size).ExpectRight({{what, {}}, {small_chunks, {.chunk_bytes = 4096}}});
}

INSTANTIATE_TEST_SUITE_P(, OperationTest,
                         ::testing::Combine(::testing::ValuesIn(kCommunicatorMeans), ::testing::ValuesIn(kSizes),
                                            ::testing::ValuesIn(kOperations)),
                         [](const auto& info) {
                           return absl::StrCat(Name(std::get<0>(info.param)), "_", std::get<1>(info.param), "_",
                                               Name(std::get<2>(info.param)));
                         });

class CommunicatorTest : public ::testing::TestWithParam<std::tuple<Means, int>> {};

TEST_P(CommunicatorTest, LongSequencesOfRandomOperations) {
  const auto [means, size] = GetParam();
  const uint64_t seed = Seed() * 100 + static_cast<uint64_t>(size);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Prng prng(seed);
  std::vector<Step> steps;
  for (int i = 0; i < 300; ++i) steps.push_back({RandomCase(size, prng), {}});
  Group(means, size).ExpectRight(steps);
}

TEST_P(CommunicatorTest, RandomOperationsWhileTheTuningChanges) {
  const auto [means, size] = GetParam();
  const uint64_t seed = Seed() * 200 + static_cast<uint64_t>(size);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Prng prng(seed);
  std::vector<Step> steps;
  for (Algorithm allreduce : kAlgorithms) {
    for (Algorithm allgather : kAlgorithms) {
      for (int64_t chunk_bytes : {0, 64, 1000}) {
        for (int i = 0; i < 4; ++i) {
          const Case what = RandomCase(size, prng);
          steps.push_back({what, {.allreduce = allreduce, .allgather = allgather, .chunk_bytes = chunk_bytes}});
        }
      }
    }
  }
  Group(means, size).ExpectRight(steps);
}

TEST_P(CommunicatorTest, NobodyLeavesABarrierBeforeAllHaveCome) {
  const auto [means, size_bound] = GetParam();
  const int size = size_bound;
  const auto world = MakeWorld(means, size);
  Mutex mutex;
  int arrived = 0;
  OnAllRanks(size, [&](Rank rank) {
    const auto communicator = world->MakeCommunicator(rank);
    for (int round = 1; round <= 20; ++round) {
      {
        MutexLock lock(&mutex);
        ++arrived;
      }
      EXPECT_OK(communicator->Barrier(Eventually()));
      MutexLock lock(&mutex);
      EXPECT_GE(arrived, round * size);
    }
  });
}

TEST_P(CommunicatorTest, ShortAllReducesAreFinishedByTheirSecondHalf) {
  const auto [means, size_bound] = GetParam();
  const int size = size_bound;
  const auto world = MakeWorld(means, size);
  OnAllRanks(size, [&](Rank rank) {
    const auto communicator = world->MakeCommunicator(rank);
    ShortAllReduce* const shorter = communicator->short_allreduce();
    if (shorter == nullptr) return;
    ASSERT_GT(shorter->max_bytes(), 0);
    for (int64_t bytes = 0; bytes <= shorter->max_bytes(); bytes = 2 * bytes + 4) {
      const int64_t count = bytes / 4;
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax}) {
        std::vector<int32_t> values(static_cast<size_t>(count) + 1, rank + 1);
        auto done = shorter->Begin(values.data(), count, DType::kInt32, op, Now());
        ASSERT_OK(done);
        if (!*done) {
          ASSERT_OK(shorter->Finish(Eventually()));
        }
        const int32_t sum = size * (size + 1) / 2;
        const int32_t want = op == ReduceOp::kSum ? sum : op == ReduceOp::kAverage ? sum / size : size;
        std::vector<int32_t> all(static_cast<size_t>(count), want);
        all.push_back(rank + 1);
        ASSERT_EQ(values, all) << "and not beyond the end";
      }
    }
    EXPECT_OK(communicator->Barrier(Eventually()));
  });
}

INSTANTIATE_TEST_SUITE_P(, CommunicatorTest,
                         ::testing::Combine(::testing::ValuesIn(kCommunicatorMeans), ::testing::ValuesIn(kSizes)),
                         [](const auto& info) {
                           return absl::StrCat(Name(std::get<0>(info.param)), "_", std::get<1>(info.param));
                         });

}  // namespace
}  // namespace farandole::testing
