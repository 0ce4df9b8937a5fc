#pragma once

// The flat schedule of ranks that share memory: a tensor goes through in chunks; each chunk is cut into as many parts
// as there are ranks, and each part has one owner, who combines it. Pure arithmetic.

#include <algorithm>
#include <cstdint>

#include "collectives/core/group.h"
#include "collectives/schedule/segment.h"

namespace farandole {

// The part of `chunk` that `owner` combines: as even as can be in units of `unit` elements (a cache line's, so that two
// owners never write to one line), in rank order. Parts of the last ranks may be empty.
constexpr Segment FlatPart(Segment chunk, int size, Rank owner, int64_t unit) {
  const int64_t units = ChunkCount(chunk.size(), unit);
  const int64_t part = ChunkCount(units, size) * unit;
  const int64_t begin = std::min(chunk.end, chunk.begin + part * owner);
  return {begin, std::min(chunk.end, begin + part)};
}

}  // namespace farandole
