#include "collectives/engine/quantised/block_code.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace farandole {
namespace {

constexpr float kLargest = 127;

// NaN if a value is not finite.
float ScaleOf(absl::Span<const float> block) {
  float largest = 0;
  bool finite = true;
  for (const float value : block) {
    finite = finite && std::isfinite(value);
    largest = std::max(largest, std::abs(value));
  }
  if (!finite) return std::numeric_limits<float>::quiet_NaN();
  const float scale = largest / kLargest;
  return scale < std::numeric_limits<float>::min() ? 0 : scale;
}

int8_t Quantise(float value, float scale) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(value / scale), -kLargest, kLargest));
}

}  // namespace

int64_t EncodedBytes(int64_t count) {
  const int64_t blocks = count / kBlockValues + (count % kBlockValues != 0 ? 1 : 0);
  return count + blocks * static_cast<int64_t>(sizeof(float));
}

void EncodeBlocks(absl::Span<const float> values, std::byte* to) {
  for (size_t at = 0; at < values.size(); at += kBlockValues) {
    const absl::Span<const float> block = values.subspan(at, kBlockValues);
    const float scale = ScaleOf(block);
    std::memcpy(to, &scale, sizeof(scale));
    to += sizeof(scale);
    const bool usable = scale > 0;  // neither zero nor NaN
    for (const float value : block) *to++ = static_cast<std::byte>(usable ? Quantise(value, scale) : 0);
  }
}

void DecodeBlocks(const std::byte* from, absl::Span<float> values) {
  for (size_t at = 0; at < values.size(); at += kBlockValues) {
    float scale;
    std::memcpy(&scale, from, sizeof(scale));
    from += sizeof(scale);
    for (float& value : values.subspan(at, kBlockValues)) {
      value = std::isfinite(scale) ? static_cast<float>(static_cast<int8_t>(*from)) * scale
                                   : std::numeric_limits<float>::quiet_NaN();
      ++from;
    }
  }
}

}  // namespace farandole
