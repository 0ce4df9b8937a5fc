// How the elements of each type lie in memory and in vectors, for one processor after the other: included once per
// target by the kernels beside it (hwy/foreach_target.h), so it has no `#pragma once`.
//
// A type's lanes have: Stored (in memory), Wide (computed with), Tag (a vector of Wide), Load and Store, and
// StoreReduced for what was computed from loaded elements alone. Memory is addressed as bytes, since it need not be
// aligned.

#if defined(FARANDOLE_COLLECTIVES_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FARANDOLE_COLLECTIVES_CPU_LANES_INL_H_
#undef FARANDOLE_COLLECTIVES_CPU_LANES_INL_H_
#else
#define FARANDOLE_COLLECTIVES_CPU_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collectives/cpu/half.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace farandole {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> LoadBytes(HWY_MAYBE_UNUSED D d, const std::byte* from) {
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> lane;
  std::memcpy(&lane, from, sizeof lane);
  return hn::Set(d, lane);
#else
  const hn::Repartition<uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from)));
#endif
}

template <class D>
HWY_INLINE void StoreBytes(HWY_MAYBE_UNUSED D d, hn::Vec<D> v, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  const hn::TFromD<D> lane = hn::GetLane(v);
  std::memcpy(to, &lane, sizeof lane);
#else
  const hn::Repartition<uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, v), bytes, reinterpret_cast<uint8_t*>(to));
#endif
}

// Two vectors from consecutive memory, in whatever order their elements are: for what is done to each by itself, and
// stored again the same way.
template <class Lanes>
struct InOrder {
  template <class D, class V>
  static HWY_INLINE void LoadPair(D d, const std::byte* from, V& v0, V& v1) {
    v0 = Lanes::Load(d, from);
    v1 = Lanes::Load(d, from + hn::Lanes(d) * sizeof(typename Lanes::Stored));
  }
  template <class D, class V>
  static HWY_INLINE void StorePair(D d, V v0, V v1, std::byte* to) {
    Lanes::Store(d, v0, to);
    Lanes::Store(d, v1, to + hn::Lanes(d) * sizeof(typename Lanes::Stored));
  }
};

template <typename T>
struct PlainLanes {
  using Stored = T;
  using Wide = T;
  using Tag = hn::ScalableTag<T>;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const std::byte* from) {
    return LoadBytes(d, from);
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, std::byte* to) {
    StoreBytes(d, v, to);
  }
};

struct TruthLanes : PlainLanes<uint8_t> {
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const std::byte* from) {
    return hn::Min(LoadBytes(d, from), hn::Set(d, uint8_t{1}));
  }
};

#if HWY_TARGET == HWY_SCALAR

struct HalfLanes {
  using Stored = uint16_t;
  using Wide = float;
  using Tag = hn::ScalableTag<float>;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const std::byte* from) {
    uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return hn::Set(d, FloatFromFloat16(bits));
  }
  template <class D>
  static HWY_INLINE void Store(D, hn::Vec<D> v, std::byte* to) {
    const uint16_t bits = Float16FromFloat(hn::GetLane(v));
    std::memcpy(to, &bits, sizeof bits);
  }
};

struct BrainLanes {
  using Stored = uint16_t;
  using Wide = float;
  using Tag = hn::ScalableTag<float>;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const std::byte* from) {
    uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return hn::Set(d, FloatFromBfloat16(bits));
  }
  template <class D>
  static HWY_INLINE void Store(D, hn::Vec<D> v, std::byte* to) {
    const uint16_t bits = Bfloat16FromFloat(hn::GetLane(v));
    std::memcpy(to, &bits, sizeof bits);
  }
};

#else

// The low halves of 32-bit lanes, which hold no more than that.
template <class D>
HWY_INLINE void StoreLowHalves(D d, hn::Vec<hn::RebindToUnsigned<D> > v, std::byte* to) {
  const hn::RebindToSigned<D> wide;
  const hn::Rebind<uint16_t, D> narrow;
  alignas(64) uint16_t lanes[hn::MaxLanes(D())];
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(wide, v)), narrow, lanes);
  std::memcpy(to, lanes, hn::Lanes(d) * sizeof(uint16_t));
}

template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D> > LoadAsLowHalves(D d, const std::byte* from) {
  const hn::RebindToUnsigned<D> wide;
  const hn::Rebind<uint16_t, D> narrow;
  alignas(64) uint16_t lanes[hn::MaxLanes(D())];
  std::memcpy(lanes, from, hn::Lanes(d) * sizeof(uint16_t));
  return hn::PromoteTo(wide, hn::LoadU(narrow, lanes));
}

// half.h once more, for all lanes at a time.
struct HalfLanes {
  using Stored = uint16_t;
  using Wide = float;
  using Tag = hn::ScalableTag<float>;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // the processor has instructions for it
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const std::byte* from) {
    const hn::Rebind<hwy::float16_t, D> stored;
    alignas(64) hwy::float16_t lanes[hn::MaxLanes(D())];
    std::memcpy(lanes, from, hn::Lanes(d) * sizeof lanes[0]);
    return hn::PromoteTo(d, hn::LoadU(stored, lanes));
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, std::byte* to) {
    const hn::Rebind<hwy::float16_t, D> stored;
    alignas(64) hwy::float16_t lanes[hn::MaxLanes(D())];
    hn::StoreU(hn::DemoteTo(stored, v), stored, lanes);
    std::memcpy(to, lanes, hn::Lanes(d) * sizeof lanes[0]);
  }
#else
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const std::byte* from) {
    const hn::RebindToUnsigned<D> bits;
    const auto stored = LoadAsLowHalves(d, from);
    const auto magnitude = hn::ShiftLeft<13>(hn::And(stored, hn::Set(bits, 0x7fffu)));
    const auto sign = hn::ShiftLeft<16>(hn::And(stored, hn::Set(bits, 0x8000u)));
    const auto scaled = hn::BitCast(bits, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
    const auto exponent = hn::And(stored, hn::Set(bits, 0x7c00u));
    const auto is_special = hn::Eq(exponent, hn::Set(bits, 0x7c00u));
    const auto special = hn::IfThenElseZero(is_special, hn::Set(bits, 0x7f800000u));
    const auto is_nan = hn::And(hn::Gt(magnitude, hn::Set(bits, 0x7c00u << 13)), is_special);
    const auto quiet = hn::IfThenElseZero(is_nan, hn::Set(bits, 0x400000u));
    return hn::BitCast(d, hn::Or(hn::Or(scaled, quiet), hn::Or(special, sign)));
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, std::byte* to) {
    const hn::RebindToUnsigned<D> bits;
    const auto all = hn::BitCast(bits, v);
    const auto sign = hn::And(hn::ShiftRight<16>(all), hn::Set(bits, 0x8000u));
    const auto magnitude = hn::And(all, hn::Set(bits, 0x7fffffffu));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(bits, 1u));
    const auto rounded = hn::Add(hn::Add(magnitude, hn::Set(bits, 0xfffu - (112u << 23))), odd);
    const auto normal = hn::ShiftRight<13>(rounded);
    const auto half = hn::Set(d, 0.5f);
    const auto subnormal =
        hn::Sub(hn::BitCast(bits, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(bits, half));
    auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(bits, 113u << 23)), subnormal, normal);
    result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(bits, 143u << 23)), result, hn::Set(bits, 0x7c00u));
    const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(bits, 0x3ffu));
    const auto nan = hn::Or(payload, hn::Set(bits, 0x7e00u));
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(bits, 0x7f800000u)), nan, result);
    StoreLowHalves(d, hn::Or(result, sign), to);
  }
#endif
};

struct BrainLanes {
  using Stored = uint16_t;
  using Wide = float;
  using Tag = hn::ScalableTag<float>;
  template <class D>
  static HWY_INLINE hn::Vec<D> Load(D d, const std::byte* from) {
    return hn::BitCast(d, hn::ShiftLeft<16>(LoadAsLowHalves(d, from)));
  }
  template <class D>
  static HWY_INLINE void Store(D d, hn::Vec<D> v, std::byte* to) {
    const hn::RebindToUnsigned<D> bits;
    const auto quiet = hn::Or(hn::ShiftRight<16>(hn::BitCast(bits, v)), hn::Set(bits, 0x40u));
    const auto is_nan = hn::RebindMask(bits, hn::IsNaN(v));
    StoreLowHalves(d, hn::IfThenElse(is_nan, quiet, Rounded(d, v)), to);
  }

  // The upper halves are right for all but NaN.
  template <class D>
  static HWY_INLINE auto RoundedUp(D d, hn::Vec<D> v) {
    const hn::RebindToUnsigned<D> bits;
    const auto all = hn::BitCast(bits, v);
    const auto odd = hn::And(hn::ShiftRight<16>(all), hn::Set(bits, 1u));
    return hn::Add(hn::Add(all, hn::Set(bits, 0x7fffu)), odd);
  }
  template <class D>
  static HWY_INLINE auto Rounded(D d, hn::Vec<D> v) {
    return hn::ShiftRight<16>(RoundedUp(d, v));
  }
};

// The elements at even places, and those at odd ones: the halves of 32 bits are where they have to be, but for a shift
// or a mask.
template <>
struct InOrder<BrainLanes> {
  template <class D, class V>
  static HWY_INLINE void LoadPair(D d, const std::byte* from, V& v0, V& v1) {
    const hn::RebindToUnsigned<D> bits;
    const auto both = LoadBytes(bits, from);
    v0 = hn::BitCast(d, hn::ShiftLeft<16>(both));
    v1 = hn::BitCast(d, hn::And(both, hn::Set(bits, 0xffff0000u)));
  }
  // Of what was computed from loaded elements alone: a NaN that comes from 16 bits, or from the processor, has nothing
  // below them, so rounding leaves it as it is.
  template <class D, class V>
  static HWY_INLINE void StorePair(D d, V v0, V v1, std::byte* to) {
    const hn::RebindToUnsigned<D> bits;
    const auto low = BrainLanes::Rounded(d, v0);
    const auto high = hn::And(BrainLanes::RoundedUp(d, v1), hn::Set(bits, 0xffff0000u));
    StoreBytes(bits, hn::Or(low, high), to);
  }
};

#endif  // HWY_TARGET == HWY_SCALAR

// The first `count` elements of a vector's memory, the others 0: what is left when no whole vector is.
template <class Lanes, class D>
HWY_INLINE hn::Vec<D> LoadPart(D d, const std::byte* from, size_t count) {
  alignas(64) std::byte whole[hn::MaxLanes(D()) * sizeof(typename Lanes::Stored)] = {};
  std::memcpy(whole, from, count * sizeof(typename Lanes::Stored));
  return Lanes::Load(d, whole);
}

template <class Lanes, class D>
HWY_INLINE void StorePart(D d, hn::Vec<D> v, std::byte* to, size_t count) {
  alignas(64) std::byte whole[hn::MaxLanes(D()) * sizeof(typename Lanes::Stored)];
  Lanes::Store(d, v, whole);
  std::memcpy(to, whole, count * sizeof(typename Lanes::Stored));
}

}  // namespace HWY_NAMESPACE
}  // namespace farandole
HWY_AFTER_NAMESPACE();

#endif
