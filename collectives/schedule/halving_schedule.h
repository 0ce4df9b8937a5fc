#pragma once

// Recursive halving and doubling (Rabenseifner 2004; Thakur and others 2005) for any number of ranks. Pure arithmetic.
//
// The ranks from the largest power of two p on have a partner below, p ranks before them, who takes their part over in
// the beginning and gives them the result in the end. Of the others, at distance d each is paired with the rank whose
// number differs in the bit d: both have the same stretch of the tensor, the lower one keeps its first half, the upper
// one its second. After log2(p) steps each has 1/p of the tensor; the same steps backwards join the stretches.

#include <bit>
#include <cstdint>

#include "collectives/core/group.h"
#include "collectives/schedule/segment.h"

namespace farandole {

// The largest power of two that is at most `size`.
constexpr int HalvingRanks(int size) { return static_cast<int>(std::bit_floor(static_cast<uint32_t>(size))); }

struct HalvingStep {
  Rank peer = 0;
  Segment kept;   // this rank's half from now on
  Segment given;  // the peer's
};

// `rank` < HalvingRanks(size); `stretch` is what the rank has before the step at distance `distance`.
constexpr HalvingStep HalvingStepOf(Rank rank, int distance, Segment stretch) {
  const int64_t middle = stretch.begin + stretch.size() / 2;
  const Segment first{stretch.begin, middle};
  const Segment second{middle, stretch.end};
  if ((rank & distance) == 0) return {rank ^ distance, first, second};
  return {rank ^ distance, second, first};
}

}  // namespace farandole
