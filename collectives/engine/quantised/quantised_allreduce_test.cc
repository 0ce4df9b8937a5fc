#include "collectives/engine/quantised/quantised_allreduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "collectives/core/group.h"
#include "collectives/cpu/half.h"
#include "collectives/engine/quantised/block_code.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

// Ranks as threads that read each other's buffers between two barriers. Only what the quantised allreduce and this
// test call; the rest says so.
struct World {
  explicit World(int size) : size(size), meet(size), inputs(size), offsets(size) {}
  int size;
  std::barrier<> meet;
  std::vector<const std::byte*> inputs;
  std::vector<std::vector<int64_t>> offsets;
  std::atomic<bool> gather_fails{false};
  std::atomic<int64_t> bytes_sent{0};  // to other ranks
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(World& world, int rank) : world_(world), rank_(rank) {}
  Rank rank() const override { return Rank(rank_); }
  int size() const override { return world_.size; }
  MemoryKind memory() const override { return MemoryKind::kHost; }
  bool retains_results() const override { return false; }

  absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                         absl::Span<const int64_t> bytes, Instant) override {
    if (world_.gather_fails) return absl::UnavailableError("rank 1 was lost");
    world_.inputs[rank_] = input.data();
    world_.bytes_sent += static_cast<int64_t>(input.size()) * (world_.size - 1);
    world_.meet.arrive_and_wait();
    std::byte* to = output.data();
    for (int r = 0; r < world_.size; to += bytes[r++]) std::memcpy(to, world_.inputs[r], bytes[r]);
    world_.meet.arrive_and_wait();
    return absl::OkStatus();
  }

  absl::Status AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to, absl::Span<std::byte> output,
                        absl::Span<const int64_t> from, Instant) override {
    world_.inputs[rank_] = input.data();
    std::vector<int64_t>& offsets = world_.offsets[rank_];
    offsets.assign(1, 0);
    for (const int64_t bytes : to) offsets.push_back(offsets.back() + bytes);
    world_.bytes_sent += static_cast<int64_t>(input.size()) - to[rank_];
    world_.meet.arrive_and_wait();
    std::byte* at = output.data();
    for (int r = 0; r < world_.size; at += from[r++]) {
      EXPECT_EQ(world_.offsets[r][rank_ + 1] - world_.offsets[r][rank_], from[r]);
      std::memcpy(at, world_.inputs[r] + world_.offsets[r][rank_], from[r]);
    }
    world_.meet.arrive_and_wait();
    return absl::OkStatus();
  }

  absl::Status AllReduce(const void*, void*, int64_t, DType, ReduceOp, Instant) override { return No(); }
  absl::Status Adasum(void*, absl::Span<const int64_t>, DType, Instant) override { return No(); }
  absl::Status ReduceScatter(const void*, void*, absl::Span<const int64_t>, DType, ReduceOp, Instant) override {
    return No();
  }
  absl::Status Broadcast(absl::Span<std::byte>, Rank, Instant) override { return No(); }
  absl::Status Barrier(Instant) override { return No(); }
  absl::Status Send(absl::Span<const std::byte>, Rank, Instant) override { return No(); }
  absl::Status Receive(absl::Span<std::byte>, Rank, Instant) override { return No(); }
  ShortAllReduce* short_allreduce() override { return nullptr; }
  void SetStream(void*) override {}
  absl::Status Await(Instant) override { return absl::OkStatus(); }
  void Tune(const CollectiveTuning&) override {}
  void Abort(absl::string_view) override {}

 private:
  static absl::Status No() { return absl::UnimplementedError("not in this test"); }
  World& world_;
  const int rank_;
};

void OnAllRanks(World& world, const std::function<void(ThreadCommunicator&, int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.size; ++rank) {
    threads.emplace_back([&world, &body, rank] {
      ThreadCommunicator communicator(world, rank);
      body(communicator, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> Random(uint64_t seed, int64_t count) {
  Prng prng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(prng.Unit() * 2 - 1);
  return values;
}

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

TEST(QuantisedAllReduce, SameBytesEverywhereWithinTheStatedError) {
  for (const int size : {1, 2, 3, 5, 8}) {
    for (const int64_t count : {0, 1, 255, 256, 257, 1000, 5000}) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
        SCOPED_TRACE(testing::Message() << size << " ranks, " << count << " elements, " << op);
        World world(size);
        std::vector<std::vector<float>> results(size, std::vector<float>(count));
        OnAllRanks(world, [&](ThreadCommunicator& communicator, int rank) {
          const std::vector<float> input = Random(rank, count);
          EXPECT_TRUE(QuantisedAllReduce(communicator, input.data(), results[rank].data(), count, op, nullptr,
                                         Instant::Infinite())
                          .ok());
        });
        std::vector<double> exact(count);
        for (int rank = 0; rank < size; ++rank) {
          const std::vector<float> input = Random(rank, count);
          for (int64_t i = 0; i < count; ++i) exact[i] += input[i];
          EXPECT_EQ(BitsOf(results[rank]), BitsOf(results[0]));
        }
        const double divisor = op == ReduceOp::kAverage ? size : 1;
        // Magnitudes are at most 1 per rank and `size` in the sum.
        const double bound = size == 1 ? 1e-7 : (size / 254.0 + size / 254.0) * 1.001 / divisor;
        for (int64_t i = 0; i < count; ++i) ASSERT_NEAR(results[0][i], exact[i] / divisor, bound) << i;
      }
    }
  }
}

TEST(QuantisedAllReduce, SendsAQuarterOfTheBytes) {
  constexpr int kSize = 4;
  constexpr int64_t kCount = 1 << 16;
  World world(kSize);
  OnAllRanks(world, [&](ThreadCommunicator& communicator, int rank) {
    std::vector<float> data = Random(rank, kCount);
    EXPECT_TRUE(
        QuantisedAllReduce(communicator, data.data(), data.data(), kCount, ReduceOp::kSum, nullptr, Instant::Infinite())
            .ok());
  });
  const double float32_bytes = 2.0 * (kSize - 1) * kCount * sizeof(float);
  EXPECT_LT(world.bytes_sent / float32_bytes, 0.26);
  EXPECT_GT(world.bytes_sent / float32_bytes, 0.25);
}

// The same gradient each step: the mean of what came out approaches what went in as 1 / steps with feedback, and
// stays where rounding put it without.
TEST(QuantisedAllReduce, FeedbackMakesTheMeanErrorVanish) {
  constexpr int kSize = 3;
  constexpr int64_t kCount = 700;
  constexpr int kSteps = 400;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    double worst[2] = {0, 0};
    for (const bool with_feedback : {false, true}) {
      World world(kSize);
      std::vector<double> mean(kCount);
      OnAllRanks(world, [&](ThreadCommunicator& communicator, int rank) {
        const std::vector<float> input = Random(rank, kCount);
        std::vector<float> output(kCount);
        ErrorFeedback feedback;
        for (int step = 0; step < kSteps; ++step) {
          EXPECT_TRUE(QuantisedAllReduce(communicator, input.data(), output.data(), kCount, op,
                                         with_feedback ? &feedback : nullptr, Instant::Infinite())
                          .ok());
          if (rank == 0) {
            for (int64_t i = 0; i < kCount; ++i) mean[i] += output[i] / double{kSteps};
          }
        }
      });
      for (int64_t i = 0; i < kCount; ++i) {
        double exact = 0;
        for (int rank = 0; rank < kSize; ++rank) exact += Random(rank, kCount)[i];
        if (op == ReduceOp::kAverage) exact /= kSize;
        worst[with_feedback] = std::max(worst[with_feedback], std::abs(mean[i] - exact));
      }
    }
    EXPECT_LT(worst[1], 2e-4) << op;
    EXPECT_GT(worst[0], 20 * worst[1]) << op;
  }
}

TEST(QuantisedAllReduce, FailureLeavesOutputAndFeedbackAsTheyWere) {
  World world(2);
  world.gather_fails = true;
  OnAllRanks(world, [&](ThreadCommunicator& communicator, int rank) {
    std::vector<float> data = Random(rank, 300);
    ErrorFeedback feedback{std::vector<float>(300, 0.25f)};
    EXPECT_EQ(
        QuantisedAllReduce(communicator, data.data(), data.data(), 300, ReduceOp::kSum, &feedback, Instant::Infinite())
            .code(),
        absl::StatusCode::kUnavailable);
    EXPECT_EQ(data, Random(rank, 300));
    EXPECT_EQ(feedback.residual, std::vector<float>(300, 0.25f));
  });
}

TEST(QuantisedAllReduce, WhatIsNotFiniteIsSeenByAllAndOwedByNobody) {
  World world(2);
  OnAllRanks(world, [&](ThreadCommunicator& communicator, int rank) {
    std::vector<float> data(600, 1.0f);
    if (rank == 1) data[300] = std::numeric_limits<float>::infinity();
    ErrorFeedback feedback;
    EXPECT_TRUE(
        QuantisedAllReduce(communicator, data.data(), data.data(), 600, ReduceOp::kSum, &feedback, Instant::Infinite())
            .ok());
    for (int i = 0; i < 600; ++i) {
      EXPECT_EQ(std::isnan(data[i]), i >= 256 && i < 512) << i;
      EXPECT_TRUE(std::isfinite(feedback.residual[i])) << i;
    }
  });
}

TEST(QuantisedAllReduce, RefusesOtherOperations) {
  World world(1);
  ThreadCommunicator communicator(world, 0);
  float value = 1;
  EXPECT_EQ(QuantisedAllReduce(communicator, &value, &value, 1, ReduceOp::kMax, nullptr, Instant::Infinite()).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(BlockCode, ExtremesKeepTheirBound) {
  for (const float magnitude : {0.0f, 1e-42f, 1e-38f, 1e-30f, 1.0f, 3e38f}) {
    std::vector<float> values = Random(7, kBlockValues);
    for (float& value : values) value *= magnitude;
    std::vector<std::byte> encoded(EncodedBytes(kBlockValues));
    std::vector<float> decoded(kBlockValues);
    EncodeBlocks(values, encoded.data());
    DecodeBlocks(encoded.data(), absl::MakeSpan(decoded));
    for (int64_t i = 0; i < kBlockValues; ++i) {
      EXPECT_NEAR(decoded[i], values[i], std::max(magnitude / 254.0 * 1.001, 1.5e-36)) << magnitude;
    }
  }
}

enum class Wire { kFloat32, kFloat16, kBfloat16, kInt8Feedback, kInt8 };

float Through(Wire wire, float value) {
  if (wire == Wire::kFloat16) return FloatFromFloat16(Float16FromFloat(value));
  if (wire == Wire::kBfloat16) return FloatFromBfloat16(Bfloat16FromFloat(value));
  return value;
}

void AverageGradient(Communicator& communicator, Wire wire, std::vector<float>& gradient, ErrorFeedback& feedback) {
  const int64_t count = static_cast<int64_t>(gradient.size());
  if (wire == Wire::kInt8 || wire == Wire::kInt8Feedback) {
    EXPECT_TRUE(QuantisedAllReduce(communicator, gradient.data(), gradient.data(), count, ReduceOp::kAverage,
                                   wire == Wire::kInt8 ? nullptr : &feedback, Instant::Infinite())
                    .ok());
    return;
  }
  for (float& value : gradient) value = Through(wire, value);
  const int size = communicator.size();
  const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  std::vector<float> all(count * size);
  EXPECT_TRUE(communicator
                  .AllGather({reinterpret_cast<const std::byte*>(gradient.data()), static_cast<size_t>(bytes)},
                             {reinterpret_cast<std::byte*>(all.data()), static_cast<size_t>(bytes * size)},
                             std::vector<int64_t>(size, bytes), Instant::Infinite())
                  .ok());
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < size; ++r) sum += all[r * count + i];
    gradient[i] = Through(wire, sum / static_cast<float>(size));
  }
}

// Logistic regression by gradient descent: 64 weights whose features differ in size by a factor of 1,000 within one
// block, which is where int8 hurts. Returns the loss over all samples after the last step.
double Train(Wire wire) {
  constexpr int kRanks = 4, kWeights = 64, kSamples = 64, kSteps = 300;
  const auto feature_scale = [](int i) { return static_cast<float>(std::pow(10.0, -3.0 * i / (kWeights - 1))); };
  World world(kRanks);
  std::vector<double> losses(kRanks);
  OnAllRanks(world, [&](ThreadCommunicator& communicator, int rank) {
    std::vector<float> truth = Random(99, kWeights);
    std::vector<float> x = Random(1000 + rank, kSamples * kWeights);
    std::vector<float> label(kSamples);
    for (int s = 0; s < kSamples; ++s) {
      float z = 0;
      for (int i = 0; i < kWeights; ++i) {
        z += x[s * kWeights + i] * truth[i];
        x[s * kWeights + i] *= feature_scale(i);
      }
      label[s] = z > 0 ? 1.0f : 0.0f;
    }
    std::vector<float> weight(kWeights, 0.0f);
    std::vector<float> gradient(kWeights);
    ErrorFeedback feedback;
    for (int step = 0; step <= kSteps; ++step) {
      std::fill(gradient.begin(), gradient.end(), 0.0f);
      double loss = 0;
      for (int s = 0; s < kSamples; ++s) {
        float z = 0;
        for (int i = 0; i < kWeights; ++i) z += x[s * kWeights + i] * weight[i];
        const float p = 1 / (1 + std::exp(-z));
        loss += std::log1p(std::exp(label[s] > 0 ? -z : z)) / kSamples;
        for (int i = 0; i < kWeights; ++i) gradient[i] += (p - label[s]) * x[s * kWeights + i] / kSamples;
      }
      losses[rank] = loss;
      if (step == kSteps) break;
      AverageGradient(communicator, wire, gradient, feedback);
      // Steps in proportion to 1 / scale^2: small gradients matter as much as large ones.
      for (int i = 0; i < kWeights; ++i) weight[i] -= 0.5f * gradient[i] / (feature_scale(i) * feature_scale(i));
    }
  });
  double mean = 0;
  for (const double loss : losses) mean += loss / kRanks;
  return mean;
}

TEST(Compression, EffectOnASmallModel) {
  const double plain = Train(Wire::kFloat32);
  const double fp16 = Train(Wire::kFloat16);
  const double bf16 = Train(Wire::kBfloat16);
  const double feedback = Train(Wire::kInt8Feedback);
  const double int8 = Train(Wire::kInt8);
  std::printf("loss: float32 %.5f, fp16 %.5f, bf16 %.5f, int8 with feedback %.5f, int8 without %.5f\n", plain, fp16,
              bf16, feedback, int8);
  EXPECT_LT(plain, 0.5 * std::log(2.0));  // it learns at all
  EXPECT_LT(std::abs(fp16 / plain - 1), 0.02);
  EXPECT_LT(std::abs(bf16 / plain - 1), 0.05);
  EXPECT_LT(std::abs(feedback / plain - 1), 0.05);
  EXPECT_GT(int8, 1.2 * feedback);
}

}  // namespace
}  // namespace farandole
