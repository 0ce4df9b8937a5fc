#include "collectives/cpu/reduce.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/types/optional.h"
#include "collectives/cpu/half.h"
#include "collectives/reference/reference.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

using reference::Bytes;

std::vector<long double> Decoded(DType dtype, const Bytes& bytes) { return reference::DecodeAll(dtype, bytes); }

// Any bits at all, so integers overflow, and floats are of every magnitude, NaN and infinite too.
Bytes RandomBits(DType dtype, int64_t count, Prng& prng) {
  Bytes bytes(count * SizeOf(dtype));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(prng.Below(256));
  return bytes;
}

// Not aligned to anything.
class Odd {
 public:
  explicit Odd(const Bytes& bytes) : storage_(1 + bytes.size()) {
    if (!bytes.empty()) std::memcpy(data(), bytes.data(), bytes.size());
  }
  std::byte* data() { return storage_.data() + 1; }
  Bytes bytes() const { return Bytes(storage_.begin() + 1, storage_.end()); }

 private:
  Bytes storage_;
};

TEST(Half, EveryFloat16IsDecodedAsTheReferenceDoesAndComesBack) {
  for (int i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const float value = FloatFromFloat16(bits);
    const long double want = reference::Decode(DType::kFloat16, reinterpret_cast<const std::byte*>(&bits));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_TRUE(std::isnan(FloatFromFloat16(Float16FromFloat(value)))) << i;
    } else {
      ASSERT_EQ(value, static_cast<float>(want)) << i;
      ASSERT_EQ(Float16FromFloat(value), bits) << i;
    }
  }
}

void ExpectEncodedAsTheReferenceDoes(float value) {
  if (std::isnan(value)) {
    EXPECT_TRUE(std::isnan(FloatFromFloat16(Float16FromFloat(value))));
    EXPECT_TRUE(std::isnan(FloatFromBfloat16(Bfloat16FromFloat(value))));
    return;
  }
  uint16_t want;
  reference::Encode(DType::kFloat16, value, reinterpret_cast<std::byte*>(&want));
  ASSERT_EQ(Float16FromFloat(value), want) << value;
  reference::Encode(DType::kBfloat16, value, reinterpret_cast<std::byte*>(&want));
  ASSERT_EQ(Bfloat16FromFloat(value), want) << value;
}

TEST(Half, FloatsAreRoundedToNearestEven) {
  Prng prng(1);
  for (int i = 0; i < 50'000; ++i) {
    ExpectEncodedAsTheReferenceDoes(std::bit_cast<float>(static_cast<uint32_t>(prng.Next())));
    ExpectEncodedAsTheReferenceDoes(static_cast<float>((prng.Unit() - 0.5) * std::ldexp(1.0, prng.Below(46) - 27)));
  }
  for (int i = 0; i < 0x7c00; ++i) {  // exactly between two neighbours, and a little to each side
    const float low = FloatFromFloat16(static_cast<uint16_t>(i));
    const float high = i + 1 == 0x7c00 ? 65536.0f : FloatFromFloat16(static_cast<uint16_t>(i + 1));
    const float middle = low + (high - low) / 2;
    for (float value : {middle, std::nextafter(middle, low), std::nextafter(middle, high), -middle}) {
      ExpectEncodedAsTheReferenceDoes(value);
    }
  }
}

TEST(Reduce, AgreesWithTheReferenceForEveryTypeOperationAndLength) {
  Prng prng(2);
  for (DType dtype : kDTypes) {
    for (ReduceOp op : kReduceOps) {
      if (op == ReduceOp::kAdasum || !Combines(dtype, op)) continue;
      for (int64_t count : {0, 1, 2, 63, 1024, 1025, 3001}) {
        const std::vector<Bytes> inputs = {RandomBits(dtype, count, prng), RandomBits(dtype, count, prng)};
        Odd a(inputs[0]), b(inputs[1]), to(Bytes(count * SizeOf(dtype)));
        Reduce(dtype, op, a.data(), b.data(), to.data(), count);
        const ReduceOp first_half = op == ReduceOp::kAverage ? ReduceOp::kSum : op;
        EXPECT_EQ(reference::AllReduceMismatch(inputs, dtype, first_half, to.bytes()), absl::nullopt)
            << dtype << " " << op << " x " << count;
        EXPECT_EQ(a.bytes(), inputs[0]);
        EXPECT_EQ(b.bytes(), inputs[1]);
        const Bytes got = to.bytes();
        Reduce(dtype, op, a.data(), b.data(), a.data(), count);
        EXPECT_EQ(a.bytes(), got) << "in place of the first";
        Odd again(inputs[0]);
        Reduce(dtype, op, again.data(), b.data(), b.data(), count);
        EXPECT_EQ(b.bytes(), got) << "in place of the second";
      }
    }
  }
}

TEST(Reduce, HalfPrecisionIsRoundedOnceToNearestEven) {
  Prng prng(3);
  for (DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (int i = 0; i < 2000; ++i) {
      std::vector<long double> values;
      for (int j = 0; j < 2; ++j) values.push_back(static_cast<long double>((prng.Unit() - 0.5) * 100));
      const std::vector<Bytes> inputs = {reference::EncodeAll(dtype, {values[0]}),
                                         reference::EncodeAll(dtype, {values[1]})};
      Bytes to(2);
      Reduce(dtype, ReduceOp::kSum, inputs[0].data(), inputs[1].data(), to.data(), 1);
      ASSERT_EQ(to, reference::AllReduce(inputs, dtype, ReduceOp::kSum)) << dtype;
    }
  }
}

TEST(Reduce, ANanIsNotLostInMinAndMax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (const auto& [a, b] : {std::pair{nan, 1.0f}, std::pair{1.0f, nan}}) {
      float to = 0;
      Reduce(DType::kFloat32, op, &a, &b, &to, 1);
      EXPECT_TRUE(std::isnan(to)) << op;
    }
  }
}

TEST(DivideBy, DividesAsTheHeaderSays) {
  int32_t ints[] = {7, -7, 49, 0, std::numeric_limits<int32_t>::min()};
  DivideBy(DType::kInt32, ints, 5, 2);
  EXPECT_EQ(ints[0], 3);
  EXPECT_EQ(ints[1], -3) << "toward zero";
  EXPECT_EQ(ints[4], -(1 << 30));
  int64_t exact[] = {49, std::numeric_limits<int64_t>::max()};
  DivideBy(DType::kInt64, exact, 1, 49);
  EXPECT_EQ(exact[0], 1) << "a multiplication by 1/49 would give 0";
  DivideBy(DType::kInt64, exact + 1, 1, 1);
  EXPECT_EQ(exact[1], std::numeric_limits<int64_t>::max());
  float real = 1.0f;
  DivideBy(DType::kFloat32, &real, 1, 3);
  EXPECT_EQ(real, 1.0f / 3.0f);
}

TEST(Scale, AgreesWithPlainArithmeticAndStaysInTheTypesRange) {
  for (DType dtype : kDTypes) {
    if (dtype == DType::kBool) continue;  // there is nothing to scale
    const Bytes from = reference::EncodeAll(dtype, {0, 1, 2, 3, 100, 7});
    Odd input(from), to(Bytes(from.size()));
    Scale(dtype, input.data(), to.data(), 6, 0.5);
    const bool whole = !IsFloat(dtype);
    const std::vector<long double> want = {0, whole ? 0 : 0.5L, 1, whole ? 1 : 1.5L, 50, whole ? 3 : 3.5L};
    EXPECT_EQ(Decoded(dtype, to.bytes()), want) << dtype;
    Scale(dtype, input.data(), input.data(), 6, 0.5);
    EXPECT_EQ(Decoded(dtype, input.bytes()), want) << dtype << " in place";
  }
  const int64_t large[] = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 1};
  int64_t scaled[3];
  Scale(DType::kInt64, large, scaled, 3, 2.0);
  EXPECT_EQ(scaled[0], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(scaled[1], std::numeric_limits<int64_t>::min());
  Scale(DType::kInt64, large, scaled, 3, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(scaled[2], 0);
  uint8_t small[] = {200, 3};
  Scale(DType::kUint8, small, small, 2, -1.5);
  EXPECT_EQ(small[0], 0);
  EXPECT_EQ(small[1], 0);
}

}  // namespace
}  // namespace farandole
