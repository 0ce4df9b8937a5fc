#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace farandole {

// float32 as blocks of int8 with one scale each: a block of k values is a float32 (in the machine's order: all ranks
// have the same) and k bytes. The scale is the block's largest magnitude / 127, each value the nearest multiple of it,
// so that
//   |value - decoded| <= largest magnitude of its block / 254   (and a float32 rounding)
// A block whose scale would be subnormal (magnitudes below about 1.5e-36) is sent as zeros. One value that is not
// finite makes its whole block NaN: an overflow is to be seen, not averaged away. Pure.
inline constexpr int64_t kBlockValues = 256;

// Bytes of `count` values; the last block may be short.
int64_t EncodedBytes(int64_t count);

// `to` holds EncodedBytes(values.size()).
void EncodeBlocks(absl::Span<const float> values, std::byte* to);

// `from` holds EncodedBytes(values.size()).
void DecodeBlocks(const std::byte* from, absl::Span<float> values);

}  // namespace farandole
