#pragma once

#include <algorithm>
#include <cstdint>

namespace farandole {

// A stretch of a tensor, in elements (or of a message, in bytes): [begin, end). Pure arithmetic, 64-bit throughout.
struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  constexpr int64_t size() const { return end - begin; }
  friend constexpr bool operator==(Segment, Segment) = default;
};

// The `index`-th of `parts` stretches that divide [0, count): in order, without gaps, and their sizes differ by one at
// most (the first ones are longer). No product of `count` is formed, so no count overflows.
constexpr Segment SegmentOf(int64_t count, int parts, int index) {
  const int64_t each = count / parts;
  const int64_t longer = count % parts;
  const int64_t begin = each * index + std::min<int64_t>(index, longer);
  return {begin, begin + each + (index < longer ? 1 : 0)};
}

// How many chunks of at most `chunk` elements `count` elements make; none for none.
constexpr int64_t ChunkCount(int64_t count, int64_t chunk) { return count / chunk + (count % chunk != 0 ? 1 : 0); }

// The `index`-th chunk of `segment`; empty past the last one.
constexpr Segment ChunkOf(Segment segment, int64_t chunk, int64_t index) {
  if (index >= ChunkCount(segment.size(), chunk)) return {segment.end, segment.end};
  const int64_t begin = segment.begin + chunk * index;
  return {begin, begin + std::min(chunk, segment.end - begin)};
}

}  // namespace farandole
