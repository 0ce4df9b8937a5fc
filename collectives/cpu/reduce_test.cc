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

// Integers of any size; floats whose sums and products of a hundred stay in the type's range.
Bytes RandomNumbers(DType dtype, int64_t count, Prng& prng) {
  if (!IsFloat(dtype)) return RandomBits(dtype, count, prng);
  std::vector<long double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back((prng.Below(2) == 0 ? 1 : -1) * (0.9L + 0.2L * prng.Unit()));
  return reference::EncodeAll(dtype, values);
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

TEST(ReduceMany, CombinesAnyNumberOfSourcesOnceForBothResults) {
  Prng prng(4);
  for (DType dtype : kDTypes) {
    for (ReduceOp op : kReduceOps) {
      if (op == ReduceOp::kAdasum || !Combines(dtype, op)) continue;
      for (int sources : {1, 2, 3, 8, 70}) {
        const int64_t count = static_cast<int64_t>(prng.Below(6000));
        std::vector<Bytes> inputs;
        std::vector<Odd> memory;
        std::vector<const void*> from;
        for (int s = 0; s < sources; ++s) inputs.push_back(RandomNumbers(dtype, count, prng));
        for (const Bytes& input : inputs) memory.emplace_back(input);
        for (Odd& one : memory) from.push_back(one.data());
        Odd to(Bytes(count * SizeOf(dtype))), copy(Bytes(count * SizeOf(dtype)));
        const int divisor = op == ReduceOp::kAverage ? sources : 1;
        ReduceMany(dtype, op, from, to.data(), copy.data(), count, divisor);
        EXPECT_EQ(reference::AllReduceMismatch(inputs, dtype, op, to.bytes()), absl::nullopt)
            << dtype << " " << op << " of " << sources << " x " << count;
        EXPECT_EQ(copy.bytes(), to.bytes());
        const Bytes want = to.bytes();
        ReduceMany(dtype, op, from, memory.back().data(), memory.front().data(), count, divisor);
        EXPECT_EQ(memory.back().bytes(), want) << "in place of the last";
        EXPECT_EQ(memory.front().bytes(), want) << "in place of the first";
      }
    }
  }
}

TEST(ReduceMany, HalfPrecisionIsRoundedOnceForAllSources) {
  // 2048 + 1 is no float16: added one after the other, all ones would be lost.
  for (DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    const long double large = dtype == DType::kFloat16 ? 2048 : 256;
    std::vector<Bytes> inputs = {reference::EncodeAll(dtype, {large})};
    for (int i = 0; i < 4; ++i) inputs.push_back(reference::EncodeAll(dtype, {1}));
    std::vector<const void*> from;
    for (const Bytes& input : inputs) from.push_back(input.data());
    Bytes to(2);
    ReduceMany(dtype, ReduceOp::kSum, from, to.data(), nullptr, 1, 1);
    EXPECT_EQ(Decoded(dtype, to)[0], large + 4) << dtype;
    ReduceMany(dtype, ReduceOp::kAverage, from, to.data(), nullptr, 1, 5);
    EXPECT_EQ(to, reference::EncodeAll(dtype, {(large + 4) / 5})) << dtype;
  }
}

TEST(Convert, RoundsOnceAndComesBack) {
  Prng prng(5);
  for (DType narrow : {DType::kFloat16, DType::kBfloat16}) {
    for (int64_t count : {0, 1, 31, 1000, 10'001}) {
      Odd wide(RandomBits(DType::kFloat32, count, prng)), to(Bytes(2 * count)), back(Bytes(4 * count));
      Convert(DType::kFloat32, wide.data(), narrow, to.data(), count);
      Convert(narrow, to.data(), DType::kFloat32, back.data(), count);
      const std::vector<long double> values = Decoded(DType::kFloat32, wide.bytes());
      const std::vector<long double> got = Decoded(narrow, to.bytes());
      const std::vector<long double> again = Decoded(DType::kFloat32, back.bytes());
      for (int64_t i = 0; i < count; ++i) {
        Bytes element(2);
        reference::Encode(narrow, values[i], element.data());
        const long double want = reference::Decode(narrow, element.data());
        EXPECT_TRUE(got[i] == want || (std::isnan(got[i]) && std::isnan(want))) << values[i];
        EXPECT_TRUE(again[i] == got[i] || (std::isnan(got[i]) && std::isnan(again[i]))) << got[i];
      }
    }
  }
}

TEST(Convert, ReachesEveryFloatingPointTypeFromEveryOther) {
  const std::vector<long double> values = {0, 1, -2.5L, 1024, 0.125L};  // every type has them
  for (DType from : kDTypes) {
    for (DType to : kDTypes) {
      if (!IsFloat(from) || !IsFloat(to)) continue;
      std::vector<long double> many;
      while (many.size() < 5000) many.insert(many.end(), values.begin(), values.end());
      Odd input(reference::EncodeAll(from, many)), output(Bytes(many.size() * SizeOf(to)));
      Convert(from, input.data(), to, output.data(), static_cast<int64_t>(many.size()));
      EXPECT_EQ(Decoded(to, output.bytes()), many) << from << " to " << to;
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
    const Bytes from = reference::EncodeAll(dtype, {0, 1, 2, 3, 100, 7});
    Odd input(from), to(Bytes(from.size()));
    Scale(dtype, input.data(), to.data(), 6, 0.5);
    if (dtype == DType::kBool) continue;
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
  uint8_t truths[] = {0, 1, 7};
  Scale(DType::kBool, truths, truths, 3, 0.25);
  EXPECT_EQ(absl::MakeConstSpan(truths), absl::MakeConstSpan({uint8_t{0}, uint8_t{1}, uint8_t{1}}));
  Scale(DType::kBool, truths, truths, 3, 0);
  EXPECT_EQ(truths[1], 0);
  uint8_t small[] = {200, 3};
  Scale(DType::kUint8, small, small, 2, -1.5);
  EXPECT_EQ(small[0], 0);
  EXPECT_EQ(small[1], 0);
}

}  // namespace
}  // namespace farandole
