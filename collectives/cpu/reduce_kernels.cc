#include "collectives/cpu/reduce_kernels.h"

#include <cstddef>
#include <type_traits>

#include "tools/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectives/cpu/reduce_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "collectives/cpu/lanes-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farandole {
namespace HWY_NAMESPACE {

struct SumOf {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    return hn::Add(a, b);
  }
};

struct ProductOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    using T = hn::TFromD<D>;
    if constexpr (std::is_floating_point_v<T> || sizeof(T) == 2 || sizeof(T) == 4) {
      return hn::Mul(a, b);
    } else {  // not for every target in one instruction
      using Wrapping = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;
      alignas(64) T x[hn::MaxLanes(D())];
      alignas(64) T y[hn::MaxLanes(D())];
      hn::Store(a, d, x);
      hn::Store(b, d, y);
      for (size_t i = 0; i < hn::Lanes(d); ++i) {
        x[i] = static_cast<T>(static_cast<Wrapping>(x[i]) * static_cast<Wrapping>(y[i]));
      }
      return hn::Load(d, x);
    }
  }
};

// Of floats not Min and Max of the processor: a NaN has to be kept, and that is its second argument's matter there.
struct LeastOf {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct GreatestOf {
  template <class D, class V>
  HWY_INLINE V operator()(D, V a, V b) const {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Max(a, b);
    }
  }
};

template <class Lanes>
struct Quotient {
  typename Lanes::Wide divisor;
  bool divide;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    if constexpr (std::is_floating_point_v<typename Lanes::Wide>) {
      if (divide) return hn::Div(v, hn::Set(d, divisor));
    }
    return v;
  }
};

// All sources of one stretch at a time, so that each result is written once, and four vectors of each, so that one
// source's pointer is good for more than one load.
template <class Lanes, class Op>
HWY_NOINLINE void Combine(const void* const* from, size_t sources, void* to_void, void* copy_void, int64_t count,
                          int divisor) {
  using Pairs = InOrder<Lanes>;
  const typename Lanes::Tag d;
  const Op op;
  const Quotient<Lanes> finish{static_cast<typename Lanes::Wide>(divisor), divisor > 1};
  constexpr int64_t kSize = sizeof(typename Lanes::Stored);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = lanes * kSize;
  std::byte* const to = static_cast<std::byte*>(to_void);
  std::byte* const copy = static_cast<std::byte*>(copy_void);
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const int64_t at = i * kSize;
    const std::byte* source = static_cast<const std::byte*>(from[0]) + at;
    hn::Vec<typename Lanes::Tag> v0, v1, v2, v3, w0, w1, w2, w3;
    Pairs::LoadPair(d, source, v0, v1);
    Pairs::LoadPair(d, source + 2 * step, v2, v3);
    for (size_t s = 1; s < sources; ++s) {
      source = static_cast<const std::byte*>(from[s]) + at;
      Pairs::LoadPair(d, source, w0, w1);
      Pairs::LoadPair(d, source + 2 * step, w2, w3);
      v0 = op(d, v0, w0), v1 = op(d, v1, w1), v2 = op(d, v2, w2), v3 = op(d, v3, w3);
    }
    v0 = finish(d, v0), v1 = finish(d, v1), v2 = finish(d, v2), v3 = finish(d, v3);
    for (std::byte* target : {to, copy}) {
      if (target == nullptr) continue;
      Pairs::StorePair(d, v0, v1, target + at);
      Pairs::StorePair(d, v2, v3, target + at + 2 * step);
    }
  }
  for (; i < count; i += lanes) {
    const int64_t at = i * kSize;
    const size_t part = static_cast<size_t>(count - i < lanes ? count - i : lanes);
    auto v = LoadPart<Lanes>(d, static_cast<const std::byte*>(from[0]) + at, part);
    for (size_t s = 1; s < sources; ++s) {
      v = op(d, v, LoadPart<Lanes>(d, static_cast<const std::byte*>(from[s]) + at, part));
    }
    v = finish(d, v);
    StorePart<Lanes>(d, v, to + at, part);
    if (copy != nullptr) StorePart<Lanes>(d, v, copy + at, part);
  }
}

using CombineFunction = void (*)(const void* const* from, size_t sources, void* to, void* copy, int64_t count,
                                 int divisor);

template <class Lanes>
CombineFunction CombineOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kAverage:
    case ReduceOp::kSum:
      return &Combine<Lanes, SumOf>;
    case ReduceOp::kMin:
      return &Combine<Lanes, LeastOf>;
    case ReduceOp::kMax:
      return &Combine<Lanes, GreatestOf>;
    case ReduceOp::kProduct:
      return &Combine<Lanes, ProductOf>;
    case ReduceOp::kAdasum:
      break;
  }
  return nullptr;
}

CombineFunction CombineOf(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::kUint8:
      return CombineOf<PlainLanes<uint8_t>>(op);
    case DType::kInt8:
      return CombineOf<PlainLanes<int8_t>>(op);
    case DType::kUint16:
      return CombineOf<PlainLanes<uint16_t>>(op);
    case DType::kInt16:
      return CombineOf<PlainLanes<int16_t>>(op);
    case DType::kInt32:
      return CombineOf<PlainLanes<int32_t>>(op);
    case DType::kInt64:
      return CombineOf<PlainLanes<int64_t>>(op);
    case DType::kFloat16:
      return CombineOf<HalfLanes>(op);
    case DType::kFloat32:
      return CombineOf<PlainLanes<float>>(op);
    case DType::kFloat64:
      return CombineOf<PlainLanes<double>>(op);
    case DType::kBfloat16:
      return CombineOf<BrainLanes>(op);
    case DType::kBool:  // of 0 and 1 the greatest is "or", the least "and"
      if (op == ReduceOp::kSum || op == ReduceOp::kMax) return &Combine<TruthLanes, GreatestOf>;
      if (op == ReduceOp::kProduct || op == ReduceOp::kMin) return &Combine<TruthLanes, LeastOf>;
      break;
  }
  return nullptr;
}

void CombineHere(DType dtype, ReduceOp op, const void* const* from, size_t sources, void* to, void* copy, int64_t count,
                 int divisor) {
  const CombineFunction combine = CombineOf(dtype, op);
  CHECK(combine != nullptr) << Name(op) << " of " << Name(dtype);
  combine(from, sources, to, copy, count, divisor);
}

template <bool kDivide>
struct Scaled {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v, V factor) const {
    if constexpr (kDivide) return hn::Div(v, factor);
    return hn::Mul(v, factor);
  }
};
struct Unchanged {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v, V) const {
    return v;
  }
};

// One source, whose elements may be stored otherwise than the results.
template <class From, class To, class Op>
HWY_NOINLINE void Map(const void* from_void, void* to_void, int64_t count, double factor_wide) {
  const typename From::Tag d;
  const Op op;
  const auto factor = hn::Set(d, static_cast<typename From::Wide>(factor_wide));
  constexpr int64_t kFromSize = sizeof(typename From::Stored);
  constexpr int64_t kToSize = sizeof(typename To::Stored);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const std::byte* const from = static_cast<const std::byte*>(from_void);
  std::byte* const to = static_cast<std::byte*>(to_void);
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto v0 = From::Load(d, from + i * kFromSize);
    const auto v1 = From::Load(d, from + (i + lanes) * kFromSize);
    To::Store(d, op(d, v0, factor), to + i * kToSize);
    To::Store(d, op(d, v1, factor), to + (i + lanes) * kToSize);
  }
  for (; i < count; i += lanes) {
    const size_t part = static_cast<size_t>(count - i < lanes ? count - i : lanes);
    const auto v = LoadPart<From>(d, from + i * kFromSize, part);
    StorePart<To>(d, op(d, v, factor), to + i * kToSize, part);
  }
}

template <class Lanes>
void ScaleLanes(internal::Scaling scaling, const void* from, void* to, int64_t count, double factor) {
  if (scaling == internal::Scaling::kDivide) return Map<Lanes, Lanes, Scaled<true>>(from, to, count, factor);
  Map<Lanes, Lanes, Scaled<false>>(from, to, count, factor);
}

void ScaleHere(DType dtype, internal::Scaling scaling, const void* from, void* to, int64_t count, double factor) {
  if (dtype == DType::kFloat16) return ScaleLanes<HalfLanes>(scaling, from, to, count, factor);
  if (dtype == DType::kBfloat16) return ScaleLanes<BrainLanes>(scaling, from, to, count, factor);
  if (dtype == DType::kFloat32) return ScaleLanes<PlainLanes<float>>(scaling, from, to, count, factor);
  CHECK(dtype == DType::kFloat64) << Name(dtype);
  ScaleLanes<PlainLanes<double>>(scaling, from, to, count, factor);
}

void NarrowHere(DType narrow, const void* from, void* to, int64_t count) {
  if (narrow == DType::kFloat16) return Map<PlainLanes<float>, HalfLanes, Unchanged>(from, to, count, 0);
  CHECK(narrow == DType::kBfloat16) << Name(narrow);
  Map<PlainLanes<float>, BrainLanes, Unchanged>(from, to, count, 0);
}

void WidenHere(DType narrow, const void* from, void* to, int64_t count) {
  if (narrow == DType::kFloat16) return Map<HalfLanes, PlainLanes<float>, Unchanged>(from, to, count, 0);
  CHECK(narrow == DType::kBfloat16) << Name(narrow);
  Map<BrainLanes, PlainLanes<float>, Unchanged>(from, to, count, 0);
}

}  // namespace HWY_NAMESPACE
}  // namespace farandole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace farandole {
HWY_EXPORT(CombineHere);
HWY_EXPORT(ScaleHere);
HWY_EXPORT(NarrowHere);
HWY_EXPORT(WidenHere);

namespace internal {

void CombineInVectors(DType dtype, ReduceOp op, absl::Span<const void* const> from, void* to, void* copy, int64_t count,
                      int divisor) {
  HWY_DYNAMIC_DISPATCH(CombineHere)(dtype, op, from.data(), from.size(), to, copy, count, divisor);
}

void ScaleInVectors(DType dtype, Scaling scaling, const void* from, void* to, int64_t count, double factor) {
  HWY_DYNAMIC_DISPATCH(ScaleHere)(dtype, scaling, from, to, count, factor);
}

void NarrowInVectors(DType narrow, const void* from, void* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(NarrowHere)(narrow, from, to, count);
}

void WidenInVectors(DType narrow, const void* from, void* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(WidenHere)(narrow, from, to, count);
}

}  // namespace internal
}  // namespace farandole

#endif  // HWY_ONCE
