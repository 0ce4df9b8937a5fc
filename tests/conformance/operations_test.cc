// Every operation of every kind of Communicator, with random shapes, against the reference.
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/core/communicator.h"
#include "collectives/reference/reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/communicators.h"
#include "tests/conformance/worlds.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

using reference::Bytes;
using ::testing::HasSubstr;

// A tensor that need not be aligned.
class Odd {
 public:
  explicit Odd(const Bytes& bytes) : memory_(bytes.size() + 1) { std::copy(bytes.begin(), bytes.end(), data()); }
  std::byte* data() { return memory_.data() + 1; }
  Bytes bytes() const { return Bytes(memory_.begin() + 1, memory_.end()); }

 private:
  Bytes memory_;
};

// Numbers of which every reduction of up to eight ranks stays in the type's range; in part such that sums are exact.
Bytes RandomTensor(DType dtype, int64_t count, Prng& prng) {
  std::vector<long double> values;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t small = static_cast<int64_t>(prng.Below(5));
    if (dtype == DType::kBool) {
      values.push_back(small % 2);
    } else if (dtype == DType::kUint8 || dtype == DType::kUint16) {
      values.push_back(small % 2 + 1);
    } else if (!IsFloat(dtype)) {
      values.push_back(small % 4 - 1);
    } else {
      values.push_back(i % 3 == 0 ? static_cast<long double>(small - 2) / 2 : 3 * prng.Unit() - 1.5);
    }
  }
  return reference::EncodeAll(dtype, values);
}

// All inputs of one case, the same whoever asks.
std::vector<Bytes> RandomTensors(DType dtype, const std::vector<int64_t>& counts, uint64_t seed) {
  std::vector<Bytes> tensors;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    Prng prng(seed * 1000 + rank);
    tensors.push_back(RandomTensor(dtype, counts[rank], prng));
  }
  return tensors;
}

std::vector<int64_t> RandomCounts(int size, int64_t below, Prng& prng) {
  std::vector<int64_t> counts;
  for (int i = 0; i < size; ++i) counts.push_back(prng.Below(4) == 0 ? 0 : static_cast<int64_t>(prng.Below(below)));
  return counts;
}

int64_t Sum(const std::vector<int64_t>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), int64_t{0}); }

// Few elements, some, and more than a chunk.
int64_t RandomCount(Prng& prng) {
  constexpr uint64_t kBelow[] = {3, 100, 1000, 9000};
  return static_cast<int64_t>(prng.Below(kBelow[prng.Below(4)]));
}

class OperationsTest : public ::testing::TestWithParam<std::tuple<Kind, int>> {
 protected:
  OperationsTest()
      : size_(std::get<1>(GetParam())), communicators_(MakeCommunicators(std::get<0>(GetParam()), size_)) {}

  // Runs `rounds` cases on all ranks; body(communicator, seed) does the same on each.
  void ForSeeds(int rounds, const std::function<void(Communicator&, uint64_t)>& body) {
    OnAllRanks(size_, [&](Rank rank) {
      const auto communicator = communicators_->Make(rank);
      for (int seed = 1; seed <= rounds && !HasFailure(); ++seed) {
        SCOPED_TRACE(absl::StrCat("rank ", rank, ", seed ", seed));
        body(*communicator, seed);
      }
      EXPECT_OK(communicator->Barrier(Eventually()));
    });
  }

  const int size_;
  const std::unique_ptr<Communicators> communicators_;
};

TEST_P(OperationsTest, AllReduceOfEveryTypeAndOperation) {
  int combinations = 0;
  for (DType dtype : kDTypes) {
    for (ReduceOp op : kReduceOps) combinations += op != ReduceOp::kAdasum && Combines(dtype, op);
  }
  ForSeeds(combinations, [&](Communicator& communicator, uint64_t seed) {
    int left = static_cast<int>(seed) % combinations;
    for (DType dtype : kDTypes) {
      for (ReduceOp op : kReduceOps) {
        if (op == ReduceOp::kAdasum || !Combines(dtype, op) || left-- != 0) continue;
        Prng prng(seed);
        const auto inputs = RandomTensors(dtype, std::vector<int64_t>(size_, RandomCount(prng)), seed);
        const Bytes& own = inputs[communicator.rank()];
        const int64_t count = static_cast<int64_t>(own.size()) / SizeOf(dtype);
        Odd input(own), output{Bytes(own.size())};
        EXPECT_OK(communicator.AllReduce(input.data(), output.data(), count, dtype, op, Eventually()));
        if (communicator.rank() == 0) {  // the others have the same bytes, see below
          EXPECT_EQ(reference::AllReduceMismatch(inputs, dtype, op, output.bytes()), absl::nullopt)
              << dtype << " " << op;
        }
        EXPECT_EQ(input.bytes(), own) << "the input was written to";
        EXPECT_OK(communicator.AllReduce(input.data(), input.data(), count, dtype, op, Eventually()));
        EXPECT_EQ(input.bytes(), output.bytes()) << "in place";
        // All ranks have the same bytes.
        Bytes of_zero = output.bytes();
        EXPECT_OK(communicator.Broadcast(absl::MakeSpan(of_zero), 0, Eventually()));
        EXPECT_EQ(of_zero, output.bytes()) << dtype << " " << op;
      }
    }
  });
}

TEST_P(OperationsTest, AdasumOfPieces) {
  ForSeeds(12, [&](Communicator& communicator, uint64_t seed) {
    Prng prng(seed);
    constexpr DType kFloats[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};
    const DType dtype = kFloats[prng.Below(4)];
    const std::vector<int64_t> pieces = RandomCounts(1 + static_cast<int>(prng.Below(4)), 1000, prng);
    std::vector<Bytes> parts;  // of this rank's tensor
    std::vector<std::vector<Bytes>> inputs;
    Bytes data;
    for (size_t i = 0; i < pieces.size(); ++i) {
      inputs.push_back(RandomTensors(dtype, std::vector<int64_t>(size_, pieces[i]), seed * 10 + i));
      const Bytes& own = inputs.back()[communicator.rank()];
      data.insert(data.end(), own.begin(), own.end());
    }
    ASSERT_OK(communicator.Adasum(data.data(), pieces, dtype, Eventually()));
    auto at = data.begin();
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Bytes got(at, at + pieces[i] * SizeOf(dtype));
      at += pieces[i] * SizeOf(dtype);
      EXPECT_EQ(reference::AdasumMismatch(inputs[i], dtype, got), absl::nullopt) << dtype << ", piece " << i;
    }
    Bytes of_zero = data;
    EXPECT_OK(communicator.Broadcast(absl::MakeSpan(of_zero), 0, Eventually()));
    EXPECT_EQ(of_zero, data);
    Bytes whole = inputs[0][communicator.rank()];
    ASSERT_OK(communicator.AllReduce(whole.data(), whole.data(), pieces[0], dtype, ReduceOp::kAdasum, Eventually()));
    EXPECT_EQ(reference::AdasumMismatch(inputs[0], dtype, whole), absl::nullopt);
  });
}

TEST_P(OperationsTest, ReduceScatterOfUnevenShares) {
  ForSeeds(24, [&](Communicator& communicator, uint64_t seed) {
    Prng prng(seed);
    DType dtype = kDTypes[prng.Below(std::size(kDTypes))];
    ReduceOp op = kReduceOps[prng.Below(std::size(kReduceOps))];
    if (op == ReduceOp::kAdasum || !Combines(dtype, op)) op = ReduceOp::kMax;
    const std::vector<int64_t> counts = RandomCounts(size_, 1 + RandomCount(prng), prng);
    const auto inputs = RandomTensors(dtype, std::vector<int64_t>(size_, Sum(counts)), seed);
    const Rank rank = communicator.rank();
    Odd input(inputs[rank]), output(Bytes(counts[rank] * SizeOf(dtype)));
    EXPECT_OK(communicator.ReduceScatter(input.data(), output.data(), counts, dtype, op, Eventually()));
    EXPECT_EQ(input.bytes(), inputs[rank]);
    std::vector<Bytes> shares;
    const int64_t begin = Sum({counts.begin(), counts.begin() + rank}) * SizeOf(dtype);
    for (const Bytes& one : inputs) {
      shares.emplace_back(one.begin() + begin, one.begin() + begin + counts[rank] * SizeOf(dtype));
    }
    EXPECT_EQ(reference::AllReduceMismatch(shares, dtype, op, output.bytes()), absl::nullopt) << dtype << " " << op;
  });
}

TEST_P(OperationsTest, AllGatherOfUnevenBlocks) {
  ForSeeds(16, [&](Communicator& communicator, uint64_t seed) {
    Prng prng(seed);
    const std::vector<int64_t> bytes = RandomCounts(size_, 1 + RandomCount(prng), prng);
    const auto inputs = RandomTensors(DType::kUint8, bytes, seed);
    Odd output(Bytes(Sum(bytes)));
    const absl::Span<std::byte> whole(output.data(), Sum(bytes));
    const Rank rank = communicator.rank();
    EXPECT_OK(communicator.AllGather(inputs[rank], whole, bytes, Eventually()));
    EXPECT_EQ(output.bytes(), reference::AllGather(inputs));
    EXPECT_OK(communicator.AllGather(whole.subspan(Sum({bytes.begin(), bytes.begin() + rank}), bytes[rank]), whole,
                                     bytes, Eventually()));
    EXPECT_EQ(output.bytes(), reference::AllGather(inputs)) << "in place";
  });
}

TEST_P(OperationsTest, AllToAllOfUnevenBlocks) {
  ForSeeds(16, [&](Communicator& communicator, uint64_t seed) {
    Prng prng(seed);
    std::vector<std::vector<int64_t>> bytes;  // [from][to]
    const int64_t below = 1 + RandomCount(prng);
    for (Rank rank = 0; rank < size_; ++rank) bytes.push_back(RandomCounts(size_, below, prng));
    std::vector<int64_t> sums, from;
    for (Rank r = 0; r < size_; ++r) sums.push_back(Sum(bytes[r]));
    for (Rank r = 0; r < size_; ++r) from.push_back(bytes[r][communicator.rank()]);
    const auto inputs = RandomTensors(DType::kUint8, sums, seed);
    Odd output(Bytes(Sum(from)));
    EXPECT_OK(communicator.AllToAll(inputs[communicator.rank()], bytes[communicator.rank()],
                                    {output.data(), static_cast<size_t>(Sum(from))}, from, Eventually()));
    EXPECT_EQ(output.bytes(), reference::AllToAll(inputs, bytes, communicator.rank()));
  });
}

TEST_P(OperationsTest, BroadcastFromAnyRoot) {
  ForSeeds(16, [&](Communicator& communicator, uint64_t seed) {
    Prng prng(seed);
    const Rank root = static_cast<Rank>(prng.Below(size_));
    const auto inputs = RandomTensors(DType::kUint8, std::vector<int64_t>(size_, RandomCount(prng)), seed);
    Bytes data = inputs[communicator.rank()];
    EXPECT_OK(communicator.Broadcast(absl::MakeSpan(data), root, Eventually()));
    EXPECT_EQ(data, inputs[root]);
  });
}

TEST_P(OperationsTest, SendAndReceiveBetweenAnyTwoInOrder) {
  if (size_ == 1) return;
  ForSeeds(16, [&](Communicator& communicator, uint64_t seed) {
    Prng prng(seed);
    const Rank from = static_cast<Rank>(prng.Below(size_));
    const Rank to = static_cast<Rank>((from + 1 + prng.Below(size_ - 1)) % size_);
    const auto inputs = RandomTensors(DType::kUint8, {RandomCount(prng), RandomCount(prng), 0}, seed);
    for (const Bytes& input : inputs) {
      if (communicator.rank() == from) {
        EXPECT_OK(communicator.Send(input, to, Eventually()));
      }
      if (communicator.rank() != to) continue;
      Bytes data(input.size());
      EXPECT_OK(communicator.Receive(absl::MakeSpan(data), from, Eventually()));
      EXPECT_EQ(data, input);
    }
  });
}

TEST_P(OperationsTest, WrongArgumentsAreRefusedAndDoNoHarm) {
  ForSeeds(1, [&](Communicator& communicator, uint64_t) {
    Bytes data(64), other(64);
    const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
    const std::vector<int64_t> few(size_ + 1, 0), wrong(size_, 5), none(size_, 0);
    const absl::Span<std::byte> nothing;
    EXPECT_THAT(communicator.AllReduce(data.data(), data.data(), 8, DType::kBool, ReduceOp::kAverage, Eventually()),
                invalid);
    EXPECT_THAT(communicator.AllReduce(data.data(), data.data(), 8, DType::kInt8, ReduceOp::kAdasum, Eventually()),
                invalid);
    EXPECT_THAT(communicator.AllReduce(data.data(), data.data(), -1, DType::kInt8, ReduceOp::kSum, Eventually()),
                invalid);
    EXPECT_THAT(communicator.AllReduce(nullptr, nullptr, 1, DType::kInt8, ReduceOp::kSum, Eventually()), invalid);
    EXPECT_THAT(communicator.Adasum(data.data(), {-1}, DType::kFloat32, Eventually()), invalid);
    EXPECT_THAT(communicator.ReduceScatter(data.data(), other.data(), few, DType::kInt8, ReduceOp::kSum, Eventually()),
                invalid);
    EXPECT_THAT(
        communicator.ReduceScatter(data.data(), other.data(), none, DType::kFloat32, ReduceOp::kAdasum, Eventually()),
        invalid);
    EXPECT_THAT(communicator.AllGather(data, absl::MakeSpan(other), wrong, Eventually()), invalid);
    EXPECT_THAT(communicator.AllToAll(data, wrong, absl::MakeSpan(other), wrong, Eventually()), invalid);
    EXPECT_THAT(communicator.AllToAll({}, few, nothing, none, Eventually()), invalid);
    EXPECT_THAT(communicator.Broadcast(absl::MakeSpan(data), size_, Eventually()), invalid);
    EXPECT_THAT(communicator.Send(data, communicator.rank(), Eventually()), invalid);
    EXPECT_THAT(communicator.Receive(absl::MakeSpan(data), -1, Eventually()), invalid);
  });
}

TEST_P(OperationsTest, AnAlgorithmChosenByNameGivesTheSame) {
  ForSeeds(4 * static_cast<int>(std::size(kAlgorithms)), [&](Communicator& communicator, uint64_t seed) {
    CollectiveTuning tuning;
    tuning.allreduce = tuning.allgather = kAlgorithms[seed % std::size(kAlgorithms)];
    tuning.chunk_bytes = seed % 2 == 0 ? 0 : 8192;
    communicator.Tune(tuning);
    Prng prng(seed);
    const auto inputs = RandomTensors(DType::kFloat32, std::vector<int64_t>(size_, RandomCount(prng)), seed);
    Bytes data = inputs[communicator.rank()];
    EXPECT_OK(communicator.AllReduce(data.data(), data.data(), static_cast<int64_t>(data.size()) / 4, DType::kFloat32,
                                     ReduceOp::kSum, Eventually()));
    EXPECT_EQ(reference::AllReduceMismatch(inputs, DType::kFloat32, ReduceOp::kSum, data), absl::nullopt)
        << Name(tuning.allreduce);
  });
}

INSTANTIATE_TEST_SUITE_P(, OperationsTest,
                         ::testing::Combine(::testing::ValuesIn(kAllKinds), ::testing::Values(1, 2, 3, 5, 7, 8)),
                         [](const auto& info) {
                           return absl::StrCat(Name(std::get<0>(info.param)), "_", std::get<1>(info.param));
                         });

// What each operation does when it cannot go on. `call` runs one operation that needs all ranks.
struct Operation {
  const char* name;
  std::function<absl::Status(Communicator&)> call;
};

const std::vector<Operation>& BlockingOperations() {
  constexpr int64_t kCount = 1 << 20;
  static auto& memory = *new std::vector<std::vector<float>>(16, std::vector<float>(kCount));
  static const auto& operations = *new std::vector<Operation>{
      {"short allreduce",
       [](Communicator& c) {
         float* const data = memory[c.rank()].data();
         return c.AllReduce(data, data, 1, DType::kFloat32, ReduceOp::kSum, Instant::Infinite());
       }},
      {"allreduce",
       [](Communicator& c) {
         float* const data = memory[c.rank()].data();
         return c.AllReduce(data, data, kCount, DType::kFloat32, ReduceOp::kSum, Instant::Infinite());
       }},
      {"adasum",
       [](Communicator& c) {
         return c.Adasum(memory[c.rank()].data(), {kCount}, DType::kFloat32, Instant::Infinite());
       }},
      {"reducescatter",
       [](Communicator& c) {
         float* const data = memory[c.rank()].data();
         const std::vector<int64_t> counts(c.size(), kCount / 2 / c.size());
         return c.ReduceScatter(data, data + kCount / 2, counts, DType::kFloat32, ReduceOp::kSum, Instant::Infinite());
       }},
      {"allgather",
       [](Communicator& c) {
         const std::vector<int64_t> bytes(c.size(), kCount / c.size());
         auto* const data = reinterpret_cast<std::byte*>(memory[c.rank()].data());
         return c.AllGather({data + 2 * kCount, static_cast<size_t>(bytes[0])},
                            {data, static_cast<size_t>(bytes[0] * c.size())}, bytes, Instant::Infinite());
       }},
      {"alltoall",
       [](Communicator& c) {
         const std::vector<int64_t> bytes(c.size(), kCount / c.size());
         const size_t all = static_cast<size_t>(bytes[0] * c.size());
         auto* const data = reinterpret_cast<std::byte*>(memory[c.rank()].data());
         return c.AllToAll({data, all}, bytes, {data + 2 * kCount, all}, bytes, Instant::Infinite());
       }},
      {"broadcast",
       [](Communicator& c) {
         auto* const data = reinterpret_cast<std::byte*>(memory[c.rank()].data());
         return c.Broadcast({data, 4 * kCount}, 1, Instant::Infinite());
       }},
      {"barrier", [](Communicator& c) { return c.Barrier(Instant::Infinite()); }},
      {"receive",
       [](Communicator& c) {
         auto* const data = reinterpret_cast<std::byte*>(memory[c.rank()].data());
         return c.Receive({data, 4 * kCount}, (c.rank() + 1) % c.size(), Instant::Infinite());
       }},
  };
  return operations;
}

class OperationFailureTest : public ::testing::TestWithParam<std::tuple<Kind, int>> {
 protected:
  const Operation& operation() const { return BlockingOperations()[std::get<1>(GetParam())]; }
  const std::unique_ptr<Communicators> communicators_ = MakeCommunicators(std::get<0>(GetParam()), 3);
};

TEST_P(OperationFailureTest, AnAbortEndsItAtOnceAndAllThatComesAfter) {
  std::vector<std::unique_ptr<Communicator>> all;
  for (Rank rank = 0; rank < 3; ++rank) all.push_back(communicators_->Make(rank));
  absl::Status status;
  BlockedThread thread([&] { status = operation().call(*all[0]); });
  thread.AwaitAsleep();
  all[0]->Abort("generation 4 begins");
  thread.Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, "generation 4 begins"));
  EXPECT_THAT(operation().call(*all[0]), StatusIs(absl::StatusCode::kCancelled, "generation 4 begins"));
}

TEST_P(OperationFailureTest, APeerThatHasLeftIsNamed) {
  std::vector<std::unique_ptr<Communicator>> all;
  for (Rank rank = 0; rank < 3; ++rank) all.push_back(communicators_->Make(rank));
  OnAllRanks(3, [&](Rank rank) { EXPECT_OK(all[rank]->Barrier(Eventually())); });
  absl::Status status;
  BlockedThread thread([&] { status = operation().call(*all[0]); });
  thread.AwaitAsleep();
  all[1].reset();
  all[2].reset();
  thread.Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost rank ")));
  EXPECT_THAT(all[0]->Barrier(Eventually()), StatusIs(absl::StatusCode::kFailedPrecondition));
}

INSTANTIATE_TEST_SUITE_P(, OperationFailureTest,
                         ::testing::Combine(::testing::ValuesIn(kAllKinds), ::testing::Range(0, 9)),
                         [](const auto& info) {
                           return absl::StrCat(Name(std::get<0>(info.param)), "_", std::get<1>(info.param));
                         });

}  // namespace
}  // namespace farandole::testing
