#include "collectives/reference/reference.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace farandole::reference {
namespace {

TEST(Reference, EveryHalfPrecisionNumberSurvivesDecodingAndEncoding) {
  for (DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (int bits = 0; bits < 65536; ++bits) {
      const uint16_t stored = static_cast<uint16_t>(bits);
      std::byte element[2];
      std::memcpy(element, &stored, 2);
      const long double value = Decode(dtype, element);
      if (std::isnan(value)) continue;
      Encode(dtype, value, element);
      uint16_t back;
      std::memcpy(&back, element, 2);
      ASSERT_EQ(back, stored) << dtype;
    }
  }
}

TEST(Reference, KnownHalfPrecisionNumbers) {
  auto encode = [](DType dtype, long double value) {
    std::byte element[2];
    Encode(dtype, value, element);
    uint16_t bits;
    std::memcpy(&bits, element, 2);
    return bits;
  };
  EXPECT_EQ(encode(DType::kFloat16, 1.0L), 0x3c00);
  EXPECT_EQ(encode(DType::kFloat16, -2.0L), 0xc000);
  EXPECT_EQ(encode(DType::kFloat16, 65519.99L), 0x7bff);
  EXPECT_EQ(encode(DType::kFloat16, 65520.0L), 0x7c00) << "halfway to the next number: to even, which is infinite";
  EXPECT_EQ(encode(DType::kFloat16, std::ldexp(1.0L, -25)), 0) << "halfway between 0 and the smallest: to even";
  EXPECT_EQ(encode(DType::kBfloat16, 1.0L), 0x3f80);
  EXPECT_EQ(encode(DType::kBfloat16, std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Reference, ReducesByHand) {
  const std::vector<Bytes> bytes = {EncodeAll(DType::kUint8, {250, 3}), EncodeAll(DType::kUint8, {10, 4})};
  EXPECT_EQ(AllReduce(bytes, DType::kUint8, ReduceOp::kSum), EncodeAll(DType::kUint8, {4, 7})) << "wraps";
  EXPECT_EQ(AllReduce(bytes, DType::kUint8, ReduceOp::kAverage), EncodeAll(DType::kUint8, {2, 3}));
  EXPECT_EQ(AllReduce(bytes, DType::kUint8, ReduceOp::kMax), EncodeAll(DType::kUint8, {250, 4}));
  const std::vector<Bytes> floats = {EncodeAll(DType::kFloat32, {1.5, -3}), EncodeAll(DType::kFloat32, {2, 4})};
  EXPECT_EQ(AllReduce(floats, DType::kFloat32, ReduceOp::kProduct), EncodeAll(DType::kFloat32, {3, -12}));
  EXPECT_EQ(AllReduce(floats, DType::kFloat32, ReduceOp::kAverage), EncodeAll(DType::kFloat32, {1.75, 0.5}));
  EXPECT_EQ(AllGather(floats), EncodeAll(DType::kFloat32, {1.5, -3, 2, 4}));
  EXPECT_EQ(Broadcast(floats, 1), floats[1]);
}

TEST(Reference, ScattersAndExchangesByHand) {
  const std::vector<Bytes> inputs = {EncodeAll(DType::kInt16, {1, 2, 3}), EncodeAll(DType::kInt16, {10, 20, 30})};
  const std::vector<Bytes> shares = ReduceScatter(inputs, {1, 2}, DType::kInt16, ReduceOp::kSum);
  EXPECT_EQ(shares[0], EncodeAll(DType::kInt16, {11}));
  EXPECT_EQ(shares[1], EncodeAll(DType::kInt16, {22, 33}));
  const std::vector<Bytes> blocks = AllToAll(inputs, {{2, 4}, {6, 0}});
  EXPECT_EQ(blocks[0], EncodeAll(DType::kInt16, {1, 10, 20, 30}));
  EXPECT_EQ(blocks[1], EncodeAll(DType::kInt16, {2, 3}));
}

TEST(Reference, BoolIsOrAndAnd) {
  const std::vector<Bytes> inputs = {Bytes{std::byte{2}, std::byte{4}, std::byte{0}},
                                     Bytes{std::byte{1}, std::byte{0}, std::byte{0}}};
  const Bytes either = EncodeAll(DType::kBool, {1, 1, 0});
  const Bytes both = EncodeAll(DType::kBool, {1, 0, 0});
  EXPECT_EQ(AllReduce(inputs, DType::kBool, ReduceOp::kSum), either);
  EXPECT_EQ(AllReduce(inputs, DType::kBool, ReduceOp::kMax), either);
  EXPECT_EQ(AllReduce(inputs, DType::kBool, ReduceOp::kProduct), both);
  EXPECT_EQ(AllReduce(inputs, DType::kBool, ReduceOp::kMin), both);
  EXPECT_NE(AllReduceMismatch(inputs, DType::kBool, ReduceOp::kSum, Bytes{std::byte{2}, std::byte{1}, std::byte{0}}),
            absl::nullopt)
      << "the result is 0 or 1";
}

TEST(Reference, AdasumByHand) {
  auto encode = [](const std::vector<long double>& values) { return EncodeAll(DType::kFloat32, values); };
  // Orthogonal: the sum. Alike: the average. Nothing: the other.
  EXPECT_EQ(Adasum({encode({1, 0}), encode({0, 2})}, {2}, DType::kFloat32), (std::vector<long double>{1, 2}));
  EXPECT_EQ(Adasum({encode({3, 1}), encode({3, 1})}, {2}, DType::kFloat32), (std::vector<long double>{3, 1}));
  EXPECT_EQ(Adasum({encode({0, 0}), encode({3, 1})}, {2}, DType::kFloat32), (std::vector<long double>{3, 1}));
  // Pieces are by themselves: 1 and 1 are alike, 1 and 0 are not.
  EXPECT_EQ(Adasum({encode({1, 1}), encode({1, 0})}, {1, 1}, DType::kFloat32), (std::vector<long double>{1, 1}));
  // a.b = 2, |a|^2 = 4, |b|^2 = 2.
  EXPECT_EQ(Adasum({encode({2, 0}), encode({1, 1})}, {2}, DType::kFloat32), (std::vector<long double>{2, 0.5}));
  // Three: rank 2 first with rank 0, then with rank 1.
  EXPECT_EQ(Adasum({encode({1, 0}), encode({1, 0}), encode({0, 1})}, {2}, DType::kFloat32),
            (std::vector<long double>{1.25, 0.75}));
}

TEST(Reference, AdasumMismatchTakesRoundingAndRefusesMore) {
  const std::vector<Bytes> inputs = {EncodeAll(DType::kFloat32, {0.1L, 0.7L}),
                                     EncodeAll(DType::kFloat32, {0.3L, -0.2L})};
  std::vector<long double> values = Adasum(inputs, {2}, DType::kFloat32);
  EXPECT_EQ(AdasumMismatch(inputs, {2}, DType::kFloat32, EncodeAll(DType::kFloat32, values)), absl::nullopt);
  values[1] += 2e-6L;
  EXPECT_NE(AdasumMismatch(inputs, {2}, DType::kFloat32, EncodeAll(DType::kFloat32, values)), absl::nullopt);
  values = Adasum(inputs, {1, 1}, DType::kFloat32);
  EXPECT_NE(AdasumMismatch(inputs, {2}, DType::kFloat32, EncodeAll(DType::kFloat32, values)), absl::nullopt)
      << "other pieces";
}

TEST(Reference, ToleranceTakesRoundingAndRefusesMore) {
  const std::vector<Bytes> inputs(3, EncodeAll(DType::kFloat32, {0.1L}));
  const float sum = 0.1f + 0.1f + 0.1f;
  EXPECT_EQ(AllReduceMismatch(inputs, DType::kFloat32, ReduceOp::kSum, EncodeAll(DType::kFloat32, {sum})),
            absl::nullopt);
  EXPECT_NE(AllReduceMismatch(inputs, DType::kFloat32, ReduceOp::kSum, EncodeAll(DType::kFloat32, {sum + 1e-6f})),
            absl::nullopt);
  EXPECT_NE(AllReduceMismatch(inputs, DType::kFloat32, ReduceOp::kMax, EncodeAll(DType::kFloat32, {0.1000001L})),
            absl::nullopt);
  EXPECT_NE(AllReduceMismatch(inputs, DType::kFloat32, ReduceOp::kSum, Bytes(8)), absl::nullopt);
  const std::vector<Bytes> ints(2, EncodeAll(DType::kInt64, {1}));
  EXPECT_NE(AllReduceMismatch(ints, DType::kInt64, ReduceOp::kSum, EncodeAll(DType::kInt64, {3})), absl::nullopt);
}

}  // namespace
}  // namespace farandole::reference
