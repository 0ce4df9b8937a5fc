#pragma once

// float16 and bfloat16 to float32 and back, rounded to nearest even. A NaN stays a (quiet) NaN, what is too large for
// the type becomes infinite. Without branches where it matters, so that loops over them vectorise. Pure.

#include <bit>
#include <cstdint>

namespace farandole {

inline float FloatFromBfloat16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t Bfloat16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

inline float FloatFromFloat16(uint16_t bits) {
  // The exponent and mantissa moved into place give the value times 2^-112, also for subnormals; one multiplication
  // puts that right, exactly. Infinity and NaN get the largest exponent afterwards.
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t special = (bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
  const uint32_t quiet = (bits & 0x7fff) > 0x7c00 ? 0x400000 : 0;
  return std::bit_cast<float>(scaled | special | quiet | (static_cast<uint32_t>(bits & 0x8000) << 16));
}

inline uint16_t Float16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  // Normal results: round the mantissa at bit 13, then move the exponent's origin from 127 to 15.
  const uint32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - (uint32_t{112} << 23)) >> 13;
  // Subnormal results: added to 0.5, whose last bit is worth 2^-24, the sum is rounded by the addition itself.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  uint32_t result = magnitude < (uint32_t{113} << 23) ? subnormal : normal;
  result = magnitude >= (uint32_t{143} << 23) ? 0x7c00 : result;
  result = magnitude > 0x7f800000 ? 0x7e00 | ((magnitude >> 13) & 0x3ff) : result;
  return static_cast<uint16_t>(result | sign);
}

}  // namespace farandole
