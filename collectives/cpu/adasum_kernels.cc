#include "collectives/cpu/adasum_kernels.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "collectives/cpu/half.h"
#include "tools/base/check.h"

namespace farandole {
namespace {

template <typename T>
struct Plain {
  using Stored = T;
  static double Load(T x) { return x; }
  static T Store(double x) { return static_cast<T>(x); }
};
struct Half {
  using Stored = uint16_t;
  static double Load(uint16_t x) { return FloatFromFloat16(x); }
  static uint16_t Store(double x) { return Float16FromFloat(static_cast<float>(x)); }
};
struct Brain {
  using Stored = uint16_t;
  static double Load(uint16_t x) { return FloatFromBfloat16(x); }
  static uint16_t Store(double x) { return Bfloat16FromFloat(static_cast<float>(x)); }
};

template <typename F>
void ForType(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat16:
      return f.template operator()<Half>();
    case DType::kBfloat16:
      return f.template operator()<Brain>();
    case DType::kFloat32:
      return f.template operator()<Plain<float>>();
    case DType::kFloat64:
      return f.template operator()<Plain<double>>();
    default:
      CHECK(false) << "adasum of " << Name(dtype);
  }
}

template <typename Type>
double At(const void* data, int64_t index) {
  typename Type::Stored stored;
  std::memcpy(&stored, static_cast<const std::byte*>(data) + index * sizeof stored, sizeof stored);
  return Type::Load(stored);
}

double Factor(double ab, double own) {
  // Of a vector that is next to nothing there is no direction: it is added as it is.
  static const double kNothing = std::sqrt(std::numeric_limits<double>::min());
  return own < kNothing ? 1.0 : 1.0 - ab / (2 * own);
}

}  // namespace

AdasumDots DotsOf(DType dtype, const void* a, const void* b, int64_t count) {
  AdasumDots dots;
  ForType(dtype, [&]<typename Type>() {
    constexpr int kLanes = 8;  // independent sums, so that the compiler may run them side by side
    double ab[kLanes] = {}, aa[kLanes] = {}, bb[kLanes] = {};
    for (int64_t i = 0; i < count; i += kLanes) {
      const int lanes = static_cast<int>(count - i < kLanes ? count - i : kLanes);
      for (int lane = 0; lane < lanes; ++lane) {
        const double x = At<Type>(a, i + lane), y = At<Type>(b, i + lane);
        ab[lane] += x * y, aa[lane] += x * x, bb[lane] += y * y;
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) dots.ab += ab[lane], dots.aa += aa[lane], dots.bb += bb[lane];
  });
  return dots;
}

AdasumFactors FactorsOf(const AdasumDots& dots) { return {Factor(dots.ab, dots.aa), Factor(dots.ab, dots.bb)}; }

void Combine(DType dtype, const AdasumFactors& factors, const void* a, const void* b, void* to, int64_t count) {
  ForType(dtype, [&]<typename Type>() {
    for (int64_t i = 0; i < count; ++i) {
      const auto stored = Type::Store(factors.a * At<Type>(a, i) + factors.b * At<Type>(b, i));
      std::memcpy(static_cast<std::byte*>(to) + i * sizeof stored, &stored, sizeof stored);
    }
  });
}

}  // namespace farandole
