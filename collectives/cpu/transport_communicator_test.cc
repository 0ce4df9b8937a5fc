// The ways of each collective by themselves, over transports in this process: what tests/conformance does not reach,
// because it takes the way that is chosen.
#include "collectives/cpu/transport_communicator.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "collectives/transport/inproc/inproc_transport.h"
#include "collectives/transport/solo_transport.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

Instant Soon() { return Now() + absl::Seconds(60); }

// Little data must make many chunks, and take the long ways.
constexpr TransportCommunicator::Options kSmall{.chunk_bytes = 64, .short_bytes = 32};

// `body` on each rank of a group.
void OnRanks(int size, const std::function<void(TransportCommunicator&)>& body) {
  InprocTransportGroup group(size);
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<TransportCommunicator>> communicators;
  for (Rank r = 0; r < size; ++r) {
    communicators.push_back(std::make_unique<TransportCommunicator>(group.Join(r), kSmall));
  }
  for (Rank r = 0; r < size; ++r) threads.emplace_back([&, r] { body(*communicators[r]); });
  for (std::thread& thread : threads) thread.join();
}

template <typename T>
absl::Span<std::byte> Bytes(std::vector<T>& of) {
  return {reinterpret_cast<std::byte*>(of.data()), of.size() * sizeof(T)};
}

std::vector<int32_t> Numbers(Rank rank, int64_t count) {
  std::vector<int32_t> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<int32_t>(1000 * (rank + 1) + 7 * i);
  return numbers;
}

std::vector<int32_t> SumOfNumbers(int size, int64_t count) {
  std::vector<int32_t> sum(count, 0);
  for (Rank r = 0; r < size; ++r) {
    const std::vector<int32_t> one = Numbers(r, count);
    for (int64_t i = 0; i < count; ++i) sum[i] += one[i];
  }
  return sum;
}

class SizesTest : public ::testing::TestWithParam<int> {};

TEST_P(SizesTest, EveryAlgorithmSumsInPlaceAndNot) {
  OnRanks(GetParam(), [&](TransportCommunicator& c) {
    for (const Algorithm algorithm : kAlgorithms) {
      c.Tune({algorithm, algorithm, 0});
      for (const int64_t count : {0, 1, 5, 17, 301}) {
        std::vector<int32_t> in = Numbers(c.rank(), count);
        std::vector<int32_t> out(count, -1);
        ASSERT_OK(c.AllReduce(in.data(), out.data(), count, DType::kInt32, ReduceOp::kSum, Soon()));
        EXPECT_EQ(out, SumOfNumbers(c.size(), count)) << Name(algorithm) << " x " << count;
        EXPECT_EQ(in, Numbers(c.rank(), count)) << Name(algorithm) << ": the input was written to";
        ASSERT_OK(c.AllReduce(in.data(), in.data(), count, DType::kInt32, ReduceOp::kSum, Soon()));
        EXPECT_EQ(in, out) << Name(algorithm) << " in place x " << count;
      }
    }
  });
}

TEST_P(SizesTest, TheAverageIsTheSumDividedOnceByEachWay) {
  OnRanks(GetParam(), [&](TransportCommunicator& c) {
    for (const Algorithm algorithm : kAlgorithms) {
      c.Tune({algorithm, algorithm, 0});
      std::vector<int32_t> data = Numbers(c.rank(), 101);
      std::vector<int32_t> expected = SumOfNumbers(c.size(), 101);
      for (int32_t& value : expected) value /= c.size();
      ASSERT_OK(c.AllReduce(data.data(), data.data(), 101, DType::kInt32, ReduceOp::kAverage, Soon()));
      EXPECT_EQ(data, expected) << Name(algorithm);
    }
  });
}

TEST_P(SizesTest, ReduceScatterTakesUnevenSharesAroundTheRingAndInPairs) {
  OnRanks(GetParam(), [&](TransportCommunicator& c) {
    for (const Algorithm algorithm : {Algorithm::kAuto, Algorithm::kRing, Algorithm::kDirect}) {
      c.Tune({algorithm, Algorithm::kAuto, 0});
      for (const int64_t unit : {0, 1, 40}) {
        std::vector<int64_t> counts;
        for (Rank r = 0; r < c.size(); ++r) counts.push_back(r % 3 == 1 ? 0 : unit * (r + 1));
        const int64_t begin = std::accumulate(counts.begin(), counts.begin() + c.rank(), int64_t{0});
        const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
        std::vector<int32_t> in = Numbers(c.rank(), all);
        std::vector<int32_t> out(counts[c.rank()], -1);
        ASSERT_OK(c.ReduceScatter(in.data(), out.data(), counts, DType::kInt32, ReduceOp::kAverage, Soon()));
        std::vector<int32_t> expected = SumOfNumbers(c.size(), all);
        expected = {expected.begin() + begin, expected.begin() + begin + counts[c.rank()]};
        for (int32_t& value : expected) value /= c.size();
        EXPECT_EQ(out, expected) << Name(algorithm) << ", unit " << unit;
        EXPECT_EQ(in, Numbers(c.rank(), all));
      }
    }
  });
}

TEST_P(SizesTest, AllGatherByEachWay) {
  OnRanks(GetParam(), [&](TransportCommunicator& c) {
    for (const Algorithm algorithm : kAlgorithms) {
      c.Tune({Algorithm::kAuto, algorithm, 0});
      for (const int64_t unit : {0, 1, 3, 90}) {
        std::vector<int64_t> bytes;
        std::vector<int32_t> expected;
        for (Rank r = 0; r < c.size(); ++r) {
          const std::vector<int32_t> block = Numbers(r, r % 3 == 1 ? 0 : unit * (r + 1));
          bytes.push_back(block.size() * sizeof(int32_t));
          expected.insert(expected.end(), block.begin(), block.end());
        }
        std::vector<int32_t> in = Numbers(c.rank(), bytes[c.rank()] / sizeof(int32_t));
        std::vector<int32_t> out(expected.size(), -1);
        ASSERT_OK(c.AllGather(Bytes(in), Bytes(out), bytes, Soon()));
        EXPECT_EQ(out, expected) << Name(algorithm) << ", unit " << unit;
      }
    }
  });
}

TEST_P(SizesTest, AllToAllWithUnevenBlocks) {
  OnRanks(GetParam(), [&](TransportCommunicator& c) {
    for (const int64_t unit : {0, 1, 30}) {
      const auto length = [&](Rank from, Rank to) { return unit * ((from * 3 + to * 5) % 4); };
      const auto value = [](Rank from, Rank to, int64_t i) {
        return static_cast<int32_t>(from * 10000 + to * 100 + i);
      };
      std::vector<int64_t> to;
      std::vector<int64_t> from;
      std::vector<int32_t> in;
      std::vector<int32_t> expected;
      for (Rank r = 0; r < c.size(); ++r) {
        to.push_back(length(c.rank(), r) * sizeof(int32_t));
        from.push_back(length(r, c.rank()) * sizeof(int32_t));
        for (int64_t i = 0; i < length(c.rank(), r); ++i) in.push_back(value(c.rank(), r, i));
        for (int64_t i = 0; i < length(r, c.rank()); ++i) expected.push_back(value(r, c.rank(), i));
      }
      std::vector<int32_t> out(expected.size(), -1);
      ASSERT_OK(c.AllToAll(Bytes(in), to, Bytes(out), from, Soon()));
      EXPECT_EQ(out, expected) << "unit " << unit;
    }
  });
}

TEST_P(SizesTest, BroadcastFromEachRootByTreeScatterAndChain) {
  OnRanks(GetParam(), [&](TransportCommunicator& c) {
    for (Rank root = 0; root < c.size(); ++root) {
      for (const int64_t count : {0, 1, 8, 20, 40, 1000}) {
        std::vector<int32_t> data = Numbers(c.rank(), count);
        ASSERT_OK(c.Broadcast(Bytes(data), root, Soon()));
        EXPECT_EQ(data, Numbers(root, count)) << "root " << root << " x " << count;
      }
    }
  });
}

// The formula of communicator.h on whole vectors, pair by pair.
std::vector<double> Pair(const std::vector<double>& a, const std::vector<double>& b) {
  const double ab = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  const double aa = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
  const double bb = std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
  const auto factor = [&](double norm) { return norm < std::sqrt(DBL_MIN) ? 1 : 1 - ab / (2 * norm); };
  std::vector<double> result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back(factor(aa) * a[i] + factor(bb) * b[i]);
  return result;
}

std::vector<double> TreeOf(std::vector<std::vector<double>> vectors) {
  size_t ranks = 1;
  while (2 * ranks <= vectors.size()) ranks *= 2;
  for (size_t r = ranks; r < vectors.size(); ++r) vectors[r - ranks] = Pair(vectors[r - ranks], vectors[r]);
  for (size_t distance = 1; distance < ranks; distance *= 2) {
    for (size_t r = 0; r < ranks; r += 2 * distance) vectors[r] = Pair(vectors[r], vectors[r + distance]);
  }
  return vectors[0];
}

std::vector<double> Gradient(Rank rank, int piece, int64_t count) {
  Prng prng(100 * rank + piece);
  std::vector<double> values;
  // One piece is all zeros at some ranks: its norm is nothing.
  for (int64_t i = 0; i < count; ++i) values.push_back(piece == 2 && rank % 2 == 1 ? 0 : 2 * prng.Unit() - 0.7);
  return values;
}

TEST_P(SizesTest, AdasumIsTheTreeOfPairsPieceByPiece) {
  const std::vector<int64_t> pieces = {1, 37, 5, 0, 200};
  std::vector<std::vector<double>> results(GetParam());
  OnRanks(GetParam(), [&](TransportCommunicator& c) {
    std::vector<double> data;
    for (size_t p = 0; p < pieces.size(); ++p) {
      const std::vector<double> piece = Gradient(c.rank(), p, pieces[p]);
      data.insert(data.end(), piece.begin(), piece.end());
    }
    ASSERT_OK(c.Adasum(data.data(), pieces, DType::kFloat64, Soon()));
    results[c.rank()] = data;
  });
  size_t at = 0;
  for (size_t p = 0; p < pieces.size(); ++p) {
    std::vector<std::vector<double>> vectors;
    for (Rank r = 0; r < GetParam(); ++r) vectors.push_back(Gradient(r, p, pieces[p]));
    for (const double expected : TreeOf(vectors)) {
      EXPECT_NEAR(results[0][at], expected, 1e-12 * (1 + std::abs(expected))) << "piece " << p;
      ++at;
    }
  }
  for (const std::vector<double>& result : results) EXPECT_EQ(result, results[0]) << "not the same bytes";
}

TEST_P(SizesTest, MessagesBetweenTwoAreInOrderAndDoNotDisturbTheOthers) {
  if (GetParam() == 1) return;
  OnRanks(GetParam(), [&](TransportCommunicator& c) {
    ASSERT_OK(c.Barrier(Soon()));
    if (c.rank() == 0) {
      for (int64_t count : {1, 500, 0, 3}) {
        std::vector<int32_t> data = Numbers(0, count);
        ASSERT_OK(c.Send(Bytes(data), 1, Soon()));
      }
    } else if (c.rank() == 1) {
      for (int64_t count : {1, 500, 0, 3}) {
        std::vector<int32_t> data(count, -1);
        ASSERT_OK(c.Receive(Bytes(data), 0, Soon()));
        EXPECT_EQ(data, Numbers(0, count));
      }
    }
    std::vector<int32_t> data = Numbers(c.rank(), 50);
    ASSERT_OK(c.AllReduce(data.data(), data.data(), 50, DType::kInt32, ReduceOp::kSum, Soon()));
    EXPECT_EQ(data, SumOfNumbers(c.size(), 50));
  });
}

INSTANTIATE_TEST_SUITE_P(, SizesTest, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 17));

TEST(Alone, EverythingWorksInAGroupOfOne) {
  GroupSpec spec;
  spec.members.resize(1);
  TransportCommunicator c(std::make_unique<SoloTransport>(spec));
  std::vector<float> in = {1, 2, 3};
  std::vector<float> out(3);
  const int64_t bytes = 12;
  const int64_t count = 3;
  const auto one = [](const int64_t& value) { return absl::MakeConstSpan(&value, 1); };
  EXPECT_OK(c.AllReduce(in.data(), out.data(), 3, DType::kFloat32, ReduceOp::kAverage, Soon()));
  EXPECT_EQ(out, in);
  EXPECT_OK(c.AllReduce(in.data(), out.data(), 3, DType::kFloat32, ReduceOp::kAdasum, Soon()));
  EXPECT_EQ(out, in);
  EXPECT_OK(c.Adasum(out.data(), one(count), DType::kFloat32, Soon()));
  EXPECT_EQ(out, in);
  out = {0, 0, 0};
  EXPECT_OK(c.ReduceScatter(in.data(), out.data(), one(count), DType::kFloat32, ReduceOp::kSum, Soon()));
  EXPECT_EQ(out, in);
  out = {0, 0, 0};
  EXPECT_OK(c.AllToAll(Bytes(in), one(bytes), Bytes(out), one(bytes), Soon()));
  EXPECT_EQ(out, in);
  EXPECT_OK(c.Barrier(Soon()));
}

TEST(Arguments, AreRefusedBeforeAnythingIsSentAndDoNoHarm) {
  OnRanks(2, [](TransportCommunicator& c) {
    std::vector<int32_t> data = {1, 2, 3, 4};
    std::vector<int32_t> out(4);
    const auto refused = [](absl::Status status, absl::string_view why) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(why))));
    };
    refused(c.AllReduce(data.data(), out.data(), -1, DType::kInt32, ReduceOp::kSum, Soon()), "-1 elements");
    refused(c.AllReduce(data.data(), nullptr, 4, DType::kInt32, ReduceOp::kSum, Soon()), "without a buffer");
    refused(c.AllReduce(data.data(), out.data(), 4, DType::kBool, ReduceOp::kAverage, Soon()), "bool has no average");
    refused(c.AllReduce(data.data(), out.data(), 4, DType::kInt32, ReduceOp::kAdasum, Soon()), "int32 has no adasum");
    refused(c.Adasum(data.data(), {2, -1}, DType::kFloat32, Soon()), "pieces");
    refused(c.ReduceScatter(data.data(), out.data(), {4}, DType::kInt32, ReduceOp::kSum, Soon()), "sizes");
    refused(c.ReduceScatter(data.data(), out.data(), {2, 2}, DType::kFloat32, ReduceOp::kAdasum, Soon()), "Adasum");
    refused(c.AllToAll(Bytes(data), {8, 9}, Bytes(out), {8, 8}, Soon()), "lists of sizes");
    refused(c.AllGather(Bytes(data), Bytes(out), {int64_t{1} << 62, int64_t{1} << 62}, Soon()), "sizes");
    refused(c.Broadcast(Bytes(data), 2, Soon()), "rank 2");
    refused(c.Send(Bytes(data), c.rank(), Soon()), "send");
    refused(c.Receive(Bytes(data), -1, Soon()), "receive");
    ASSERT_OK(c.AllReduce(data.data(), out.data(), 4, DType::kInt32, ReduceOp::kSum, Soon()));
    EXPECT_EQ(out, (std::vector<int32_t>{2, 4, 6, 8}));
  });
}

TEST(Errors, RanksThatCallDifferentCollectivesFindOut) {
  OnRanks(2, [](TransportCommunicator& c) {
    std::vector<double> data(100, 1.0);
    const absl::Status status =
        c.rank() == 0 ? c.Adasum(data.data(), {100}, DType::kFloat64, Soon())
                      : c.AllReduce(data.data(), data.data(), 100, DType::kFloat64, ReduceOp::kSum, Soon());
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("different collectives")));
  });
}

TEST(Errors, APeerThatIsCutInTheMiddleOfALongOneIsNamed) {
  InprocTransportGroup group(3);
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(3);
  std::vector<std::unique_ptr<TransportCommunicator>> communicators;
  for (Rank r = 0; r < 3; ++r) {
    communicators.push_back(std::make_unique<TransportCommunicator>(group.Join(r), kSmall));
  }
  group.CutLinks(1, 20);
  for (Rank r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      std::vector<float> data(10'000, 1);
      statuses[r] =
          communicators[r]->AllReduce(data.data(), data.data(), 10'000, DType::kFloat32, ReduceOp::kSum, Soon());
      communicators[r].reset();  // the others see that this one gives up
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Rank neighbour : {0, 2}) {
    EXPECT_THAT(statuses[neighbour], StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank ")));
  }
}

}  // namespace
}  // namespace farandole
