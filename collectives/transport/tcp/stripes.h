#pragma once

// How a message is cut over the streams of a link: one TCP connection is bound to one queue and one window, several go
// on side by side. Both ends know the length, so both know the cut. Pure arithmetic.

#include <algorithm>
#include <cstdint>

#include "collectives/schedule/segment.h"

namespace farandole {

// Below this much for each, a stream more costs more system calls than it brings.
inline constexpr int64_t kStripeBytesMin = 64 << 10;

// How many of `streams` a message of `length` bytes takes: the first ones, at least one.
constexpr int StripesOf(int64_t length, int streams) {
  return static_cast<int>(std::clamp<int64_t>(length / kStripeBytesMin, 1, streams));
}

// Which bytes of it go through the `stream`-th.
constexpr Segment StripeOf(int64_t length, int stripes, int stream) { return SegmentOf(length, stripes, stream); }

}  // namespace farandole
