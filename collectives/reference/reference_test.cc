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
