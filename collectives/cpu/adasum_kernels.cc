#include "collectives/cpu/adasum_kernels.h"

#include <cfloat>
#include <cmath>
#include <cstddef>

#include "tools/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/cpu/adasum_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "collectives/cpu/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farandole {
namespace HWY_NAMESPACE {

// The elements of a type as doubles, as many as a vector has.
template <class Lanes, class D>
HWY_INLINE hn::Vec<D> LoadAsDoubles(D d, const std::byte* from) {
  if constexpr (sizeof(typename Lanes::Wide) == sizeof(double)) {
    return Lanes::Load(d, from);
  } else {
    return hn::PromoteTo(d, Lanes::Load(hn::Rebind<float, D>(), from));
  }
}

// Partial sums: element i of every kSums goes to sum i, however many of them fit into a vector, and those are added up
// in their order. So the vectors' length does not show.
constexpr int64_t kSums = 16;

template <class Lanes>
HWY_NOINLINE AdasumProducts Dots(const void* a_void, const void* b_void, int64_t count) {
  const hn::CappedTag<double, kSums> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::CappedTag<double, kSums>());
  constexpr size_t kVectors = kSums / kLanes;
  constexpr int64_t kSize = sizeof(typename Lanes::Stored);
  const std::byte* a = static_cast<const std::byte*>(a_void);
  const std::byte* b = static_cast<const std::byte*>(b_void);
  hn::Vec<decltype(d)> ab[kVectors], aa[kVectors], bb[kVectors];
  for (size_t k = 0; k < kVectors; ++k) ab[k] = aa[k] = bb[k] = hn::Zero(d);
  alignas(64) std::byte last[2][kSums * kSize] = {};
  for (int64_t i = 0; i < count; i += kSums) {
    if (count - i < kSums) {
      std::memcpy(last[0], a, static_cast<size_t>((count - i) * kSize));
      std::memcpy(last[1], b, static_cast<size_t>((count - i) * kSize));
      a = last[0], b = last[1];
    }
    for (size_t k = 0; k < kVectors; ++k) {
      const auto x = LoadAsDoubles<Lanes>(d, a + k * kLanes * kSize);
      const auto y = LoadAsDoubles<Lanes>(d, b + k * kLanes * kSize);
      ab[k] = hn::Add(ab[k], hn::Mul(x, y));
      aa[k] = hn::Add(aa[k], hn::Mul(x, x));
      bb[k] = hn::Add(bb[k], hn::Mul(y, y));
    }
    a += kSums * kSize, b += kSums * kSize;
  }
  alignas(64) double sums[3][kSums];
  for (size_t k = 0; k < kVectors; ++k) {
    hn::Store(ab[k], d, &sums[0][k * kLanes]);
    hn::Store(aa[k], d, &sums[1][k * kLanes]);
    hn::Store(bb[k], d, &sums[2][k * kLanes]);
  }
  AdasumProducts dots;
  for (int64_t i = 0; i < kSums; ++i) dots += AdasumProducts{sums[0][i], sums[1][i], sums[2][i]};
  return dots;
}

AdasumProducts DotsHere(DType dtype, const void* a, const void* b, int64_t count) {
  if (dtype == DType::kFloat16) return Dots<HalfLanes>(a, b, count);
  if (dtype == DType::kBfloat16) return Dots<BrainLanes>(a, b, count);
  if (dtype == DType::kFloat32) return Dots<PlainLanes<float>>(a, b, count);
  CHECK(dtype == DType::kFloat64) << Name(dtype);
  return Dots<PlainLanes<double>>(a, b, count);
}

// The sum of two multiples, computed in T.
template <class Lanes, typename T>
HWY_NOINLINE void Add(const void* a_void, double ca, const void* b_void, double cb, void* to_void, int64_t count) {
  const hn::ScalableTag<T> d;
  const auto fa = hn::Set(d, static_cast<T>(ca));
  const auto fb = hn::Set(d, static_cast<T>(cb));
  constexpr int64_t kSize = sizeof(typename Lanes::Stored);
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const std::byte* a = static_cast<const std::byte*>(a_void);
  const std::byte* b = static_cast<const std::byte*>(b_void);
  std::byte* to = static_cast<std::byte*>(to_void);
  auto step = [&](const std::byte* x, const std::byte* y, std::byte* z) HWY_ATTR {
    if constexpr (sizeof(T) > sizeof(typename Lanes::Wide)) {
      const auto sum = hn::Add(hn::Mul(fa, LoadAsDoubles<Lanes>(d, x)), hn::Mul(fb, LoadAsDoubles<Lanes>(d, y)));
      const hn::Rebind<float, decltype(d)> narrow;
      Lanes::Store(narrow, hn::DemoteTo(narrow, sum), z);
    } else {
      Lanes::Store(d, hn::Add(hn::Mul(fa, Lanes::Load(d, x)), hn::Mul(fb, Lanes::Load(d, y))), z);
    }
  };
  for (; count >= lanes; count -= lanes) {
    step(a, b, to);
    a += lanes * kSize, b += lanes * kSize, to += lanes * kSize;
  }
  if (count <= 0) return;
  alignas(64) std::byte last[2][kLanes * kSize] = {};
  std::memcpy(last[0], a, static_cast<size_t>(count * kSize));
  std::memcpy(last[1], b, static_cast<size_t>(count * kSize));
  step(last[0], last[1], last[0]);
  std::memcpy(to, last[0], static_cast<size_t>(count * kSize));
}

void AddHere(DType dtype, const void* a, double ca, const void* b, double cb, void* to, int64_t count) {
  if (dtype == DType::kFloat16) return Add<HalfLanes, float>(a, ca, b, cb, to, count);
  if (dtype == DType::kBfloat16) return Add<BrainLanes, float>(a, ca, b, cb, to, count);
  if (dtype == DType::kFloat32) return Add<PlainLanes<float>, double>(a, ca, b, cb, to, count);
  CHECK(dtype == DType::kFloat64) << Name(dtype);
  Add<PlainLanes<double>, double>(a, ca, b, cb, to, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace farandole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace farandole {

HWY_EXPORT(DotsHere);
HWY_EXPORT(AddHere);

AdasumProducts AdasumDots(DType dtype, const void* a, const void* b, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(DotsHere)(dtype, a, b, count);
}

AdasumCoefficients CoefficientsOf(const AdasumProducts& dots) {
  const double nothing = std::sqrt(DBL_MIN);
  AdasumCoefficients coefficients;
  if (!(dots.aa < nothing)) coefficients.a = 1 - dots.ab / (2 * dots.aa);
  if (!(dots.bb < nothing)) coefficients.b = 1 - dots.ab / (2 * dots.bb);
  return coefficients;
}

void AdasumCombine(DType dtype, const void* a, double ca, const void* b, double cb, void* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(AddHere)(dtype, a, ca, b, cb, to, count);
}

}  // namespace farandole

#endif  // HWY_ONCE
