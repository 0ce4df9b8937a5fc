#include "collectives/cpu/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "collectives/cpu/reduce_kernels.h"
#include "tools/base/check.h"

namespace farandole {
namespace {

// Work is cut into pieces of this size where a second pass over a piece must find it in the first cache.
constexpr int64_t kBlockBytes = 8192;

// Integers are divided and scaled one by one: nobody waits for that. Calls f.template operator()<Type>().
template <typename F>
void ForInteger(DType dtype, F f) {
  switch (dtype) {
    case DType::kUint8:
      return f.template operator()<uint8_t>();
    case DType::kInt8:
      return f.template operator()<int8_t>();
    case DType::kUint16:
      return f.template operator()<uint16_t>();
    case DType::kInt16:
      return f.template operator()<int16_t>();
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kInt64:
      return f.template operator()<int64_t>();
    case DType::kBool:
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kBfloat16:
      break;
  }
  CHECK(false) << Name(dtype) << " is no integer";
}

// Over local arrays, where the compiler knows that nothing overlaps and all is aligned.
template <typename T, typename Apply>
void MapElements(const void* from, void* to, int64_t count, Apply apply) {
  constexpr int64_t kBlock = 1024 / sizeof(T);
  const std::byte* in = static_cast<const std::byte*>(from);
  std::byte* out = static_cast<std::byte*>(to);
  alignas(64) T x[kBlock];
  for (; count > 0; count -= kBlock) {
    const int64_t block = std::min(count, kBlock);
    const size_t bytes = static_cast<size_t>(block) * sizeof(T);
    std::memcpy(x, in, bytes);
    for (int64_t i = 0; i < block; ++i) x[i] = apply(x[i]);
    std::memcpy(out, x, bytes);
    in += bytes, out += bytes;
  }
}

template <typename T>
T Clamp(double value) {
  // The upper end of int64 is no double: 2^63 is the first one above it.
  constexpr double kEnd = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
  constexpr double kBegin = static_cast<double>(std::numeric_limits<T>::min());
  if (std::isnan(value)) return 0;
  if (value >= kEnd) return std::numeric_limits<T>::max();
  if (value <= kBegin) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

// A divisor of integers is applied to what was just added up, and still is in the first cache.
void ReduceManyIntegers(DType dtype, ReduceOp op, absl::Span<const void* const> from, std::byte* to, std::byte* copy,
                        int64_t count, int divisor) {
  const int64_t size = SizeOf(dtype);
  const int64_t block = kBlockBytes / size;
  absl::InlinedVector<const void*, 32> here(from.size());
  for (int64_t i = 0; i < count; i += block) {
    const int64_t part = std::min(block, count - i);
    for (size_t s = 0; s < from.size(); ++s) here[s] = static_cast<const std::byte*>(from[s]) + i * size;
    internal::CombineInVectors(dtype, op, here, to + i * size, nullptr, part, 1);
    DivideBy(dtype, to + i * size, part, divisor);
    if (copy != nullptr) std::memcpy(copy + i * size, to + i * size, static_cast<size_t>(part * size));
  }
}

bool IsNarrow(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

// From or to float32.
void ConvertOnce(DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to, int64_t count) {
  if (from_dtype == to_dtype) {
    if (count > 0) std::memcpy(to, from, static_cast<size_t>(count * SizeOf(to_dtype)));
  } else if (IsNarrow(to_dtype)) {
    internal::NarrowInVectors(to_dtype, from, to, count);
  } else if (IsNarrow(from_dtype)) {
    internal::WidenInVectors(from_dtype, from, to, count);
  } else if (to_dtype == DType::kFloat64) {
    for (int64_t i = 0; i < count; ++i) {
      float value;
      std::memcpy(&value, from + i * int64_t{sizeof value}, sizeof value);
      const double wide = value;
      std::memcpy(to + i * int64_t{sizeof wide}, &wide, sizeof wide);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      double value;
      std::memcpy(&value, from + i * int64_t{sizeof value}, sizeof value);
      const float narrow = static_cast<float>(value);
      std::memcpy(to + i * int64_t{sizeof narrow}, &narrow, sizeof narrow);
    }
  }
}

}  // namespace

void Reduce(DType dtype, ReduceOp op, const void* a, const void* b, void* to, int64_t count) {
  const void* const from[] = {a, b};
  internal::CombineInVectors(dtype, op, from, to, nullptr, count, 1);
}

void ReduceMany(DType dtype, ReduceOp op, absl::Span<const void* const> from, void* to, void* copy, int64_t count,
                int divisor) {
  CHECK(!from.empty());
  if (divisor > 1 && !IsFloat(dtype)) {
    return ReduceManyIntegers(dtype, op, from, static_cast<std::byte*>(to), static_cast<std::byte*>(copy), count,
                              divisor);
  }
  internal::CombineInVectors(dtype, op, from, to, copy, count, divisor);
}

void DivideBy(DType dtype, void* data, int64_t count, int divisor) {
  if (divisor == 1) return;
  if (IsFloat(dtype)) {
    return internal::ScaleInVectors(dtype, internal::Scaling::kDivide, data, data, count, divisor);
  }
  ForInteger(dtype, [&]<typename T>() {
    // Clamp, since 2^63 - 1 as a double is 2^63.
    const double by = divisor;
    MapElements<T>(data, data, count, [by](T x) { return Clamp<T>(static_cast<double>(x) / by); });
  });
}

void Scale(DType dtype, const void* from, void* to, int64_t count, double factor) {
  if (IsFloat(dtype)) {
    return internal::ScaleInVectors(dtype, internal::Scaling::kMultiply, from, to, count, factor);
  }
  if (dtype == DType::kBool) {
    const bool keeps = factor != 0 && !std::isnan(factor);
    return MapElements<uint8_t>(from, to, count, [keeps](uint8_t x) { return static_cast<uint8_t>(keeps && x != 0); });
  }
  ForInteger(dtype, [&]<typename T>() {
    MapElements<T>(from, to, count, [factor](T x) { return Clamp<T>(static_cast<double>(x) * factor); });
  });
}

void Convert(DType from_dtype, const void* from_void, DType to_dtype, void* to_void, int64_t count) {
  CHECK(IsFloat(from_dtype) && IsFloat(to_dtype)) << Name(from_dtype) << " to " << Name(to_dtype);
  const std::byte* from = static_cast<const std::byte*>(from_void);
  std::byte* to = static_cast<std::byte*>(to_void);
  if (from_dtype == to_dtype || from_dtype == DType::kFloat32 || to_dtype == DType::kFloat32) {
    return ConvertOnce(from_dtype, from, to_dtype, to, count);
  }
  constexpr int64_t kBlock = kBlockBytes / sizeof(float);
  alignas(64) std::byte between[kBlockBytes];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t part = std::min(kBlock, count - i);
    ConvertOnce(from_dtype, from + i * SizeOf(from_dtype), DType::kFloat32, between, part);
    ConvertOnce(DType::kFloat32, between, to_dtype, to + i * SizeOf(to_dtype), part);
  }
}

}  // namespace farandole
