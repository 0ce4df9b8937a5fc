#include "collectives/cpu/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "collectives/cpu/half.h"
#include "tools/base/check.h"

namespace farandole {
namespace {

// How each DType lies in memory (Stored) and is computed with (Wide).
template <typename T>
struct Plain {
  using Stored = T;
  using Wide = T;
  static Wide Load(Stored x) { return x; }
  static Stored Store(Wide x) { return x; }
};
struct Truth {
  using Stored = uint8_t;
  using Wide = uint8_t;
  static Wide Load(Stored x) { return x != 0 ? 1 : 0; }
  static Stored Store(Wide x) { return x != 0 ? 1 : 0; }
};
struct Half {
  using Stored = uint16_t;
  using Wide = float;
  static Wide Load(Stored x) { return FloatFromFloat16(x); }
  static Stored Store(Wide x) { return Float16FromFloat(x); }
};
struct Brain {
  using Stored = uint16_t;
  using Wide = float;
  static Wide Load(Stored x) { return FloatFromBfloat16(x); }
  static Stored Store(Wide x) { return Bfloat16FromFloat(x); }
};

// Calls f.template operator()<Type>().
template <typename F>
void ForType(DType dtype, F f) {
  switch (dtype) {
    case DType::kUint8:
      return f.template operator()<Plain<uint8_t>>();
    case DType::kInt8:
      return f.template operator()<Plain<int8_t>>();
    case DType::kUint16:
      return f.template operator()<Plain<uint16_t>>();
    case DType::kInt16:
      return f.template operator()<Plain<int16_t>>();
    case DType::kBool:
      return f.template operator()<Truth>();
    case DType::kInt32:
      return f.template operator()<Plain<int32_t>>();
    case DType::kInt64:
      return f.template operator()<Plain<int64_t>>();
    case DType::kFloat16:
      return f.template operator()<Half>();
    case DType::kFloat32:
      return f.template operator()<Plain<float>>();
    case DType::kFloat64:
      return f.template operator()<Plain<double>>();
    case DType::kBfloat16:
      return f.template operator()<Brain>();
  }
  CHECK(false) << "dtype " << static_cast<int>(dtype);
}

// The loops run over blocks that are copied to local arrays and back: there the compiler knows that nothing overlaps
// and all is aligned, so it vectorises one loop for every case, and the copies stay in the first cache.
constexpr int kBlockBytes = 1024;

template <typename Type, typename Apply>
void Binary(const void* a, const void* b, void* to, int64_t count, Apply apply) {
  using Stored = typename Type::Stored;
  constexpr int kBlock = kBlockBytes / sizeof(Stored);
  const std::byte* from_a = static_cast<const std::byte*>(a);
  const std::byte* from_b = static_cast<const std::byte*>(b);
  std::byte* out = static_cast<std::byte*>(to);
  alignas(64) Stored x[kBlock];
  alignas(64) Stored y[kBlock];
  while (count >= kBlock) {
    std::memcpy(x, from_a, sizeof x);
    std::memcpy(y, from_b, sizeof y);
    for (int i = 0; i < kBlock; ++i) x[i] = Type::Store(apply(Type::Load(x[i]), Type::Load(y[i])));
    std::memcpy(out, x, sizeof x);
    from_a += sizeof x, from_b += sizeof y, out += sizeof x, count -= kBlock;
  }
  if (count == 0) return;
  const size_t rest = static_cast<size_t>(count) * sizeof(Stored);
  std::memcpy(x, from_a, rest);
  std::memcpy(y, from_b, rest);
  for (int i = 0; i < count; ++i) x[i] = Type::Store(apply(Type::Load(x[i]), Type::Load(y[i])));
  std::memcpy(out, x, rest);
}

template <typename Type, typename Apply>
void Unary(const void* from, void* to, int64_t count, Apply apply) {
  using Stored = typename Type::Stored;
  constexpr int kBlock = kBlockBytes / sizeof(Stored);
  const std::byte* in = static_cast<const std::byte*>(from);
  std::byte* out = static_cast<std::byte*>(to);
  alignas(64) Stored x[kBlock];
  for (; count > 0; count -= kBlock) {
    const int block = static_cast<int>(std::min<int64_t>(count, kBlock));
    const size_t bytes = block * sizeof(Stored);
    std::memcpy(x, in, bytes);
    for (int i = 0; i < block; ++i) x[i] = Type::Store(apply(Type::Load(x[i])));
    std::memcpy(out, x, bytes);
    in += bytes, out += bytes;
  }
}

// Signed overflow is undefined, unsigned arithmetic is not; uint8_t is widened to unsigned, not to int.
template <typename T>
using Wrapping = std::make_unsigned_t<std::conditional_t<(sizeof(T) < sizeof(int)), int, T>>;

template <typename T>
T Add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  } else {
    return a + b;
  }
}

template <typename T>
T Multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  } else {
    return a * b;
  }
}

// A comparison with a NaN is false, and only a NaN differs from itself.
template <typename T>
T Least(T a, T b) {
  return a < b || a != a ? a : b;
}

template <typename T>
T Greatest(T a, T b) {
  return a > b || a != a ? a : b;
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

}  // namespace

void Reduce(DType dtype, ReduceOp op, const void* a, const void* b, void* to, int64_t count) {
  ForType(dtype, [&]<typename Type>() {
    using Wide = typename Type::Wide;
    switch (op) {
      case ReduceOp::kAverage:
      case ReduceOp::kSum:
        return Binary<Type>(a, b, to, count, [](Wide x, Wide y) { return Add(x, y); });
      case ReduceOp::kMin:
        return Binary<Type>(a, b, to, count, [](Wide x, Wide y) { return Least(x, y); });
      case ReduceOp::kMax:
        return Binary<Type>(a, b, to, count, [](Wide x, Wide y) { return Greatest(x, y); });
      case ReduceOp::kProduct:
        return Binary<Type>(a, b, to, count, [](Wide x, Wide y) { return Multiply(x, y); });
      case ReduceOp::kAdasum:
        break;
    }
    CHECK(false) << "reduce op " << static_cast<int>(op);
  });
}

void FillNeutral(DType dtype, ReduceOp op, void* to, int64_t count) {
  ForType(dtype, [&]<typename Type>() {
    using Wide = typename Type::Wide;
    using Limits = std::numeric_limits<Wide>;
    Wide value = 0;
    if (op == ReduceOp::kProduct) value = 1;
    if (op == ReduceOp::kMin) value = Limits::has_infinity ? Limits::infinity() : Limits::max();
    if (op == ReduceOp::kMax) value = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    const typename Type::Stored stored = Type::Store(value);
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(static_cast<std::byte*>(to) + i * sizeof stored, &stored, sizeof stored);
    }
  });
}

void ReduceMany(DType dtype, ReduceOp op, absl::Span<const void* const> from, void* to, void* copy, int64_t count,
                int divisor) {
  if (from.size() == 1) {
    if (to != from[0]) std::memmove(to, from[0], count * SizeOf(dtype));
  } else {
    Reduce(dtype, op, from[0], from[1], to, count);
    for (size_t i = 2; i < from.size(); ++i) Reduce(dtype, op, to, from[i], to, count);
  }
  if (divisor > 1) DivideBy(dtype, to, count, divisor);
  if (copy != nullptr) std::memcpy(copy, to, count * SizeOf(dtype));
}

void DivideBy(DType dtype, void* data, int64_t count, int divisor) {
  ForType(dtype, [&]<typename Type>() {
    using Wide = typename Type::Wide;
    if constexpr (std::is_integral_v<Wide>) {
      // Clamp, since 2^63 - 1 as a double is 2^63.
      Unary<Type>(data, data, count,
                  [divisor](Wide x) { return Clamp<Wide>(static_cast<double>(x) / static_cast<double>(divisor)); });
    } else {
      Unary<Type>(data, data, count, [by = static_cast<Wide>(divisor)](Wide x) { return x / by; });
    }
  });
}

void Scale(DType dtype, const void* from, void* to, int64_t count, double factor) {
  ForType(dtype, [&]<typename Type>() {
    using Wide = typename Type::Wide;
    if constexpr (std::is_integral_v<Wide>) {
      Unary<Type>(from, to, count, [factor](Wide x) { return Clamp<Wide>(static_cast<double>(x) * factor); });
    } else {
      Unary<Type>(from, to, count, [by = static_cast<Wide>(factor)](Wide x) { return x * by; });
    }
  });
}

}  // namespace farandole
