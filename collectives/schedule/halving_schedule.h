#pragma once

// Recursive halving and doubling (Rabenseifner, 2004): in each level a rank and the one at twice the distance of the
// level before share what they still have: each gives one half away and keeps the other, so log2(size) levels move as
// few bytes as the ring does; the way back joins the halves again. Pure arithmetic.
//
// Groups that are no power of two: p is the largest power of two in the size; a rank from p on gives all it has to the
// rank p below it before the first level, and gets the result after the last one.
//
//   rank   0   1   2   3   4        size 5, p = 4
//          <---------------'        folded
//          '-->   '-->              distance 1: 0 and 2 keep the first half, 1 and 3 the second
//          '------>   '             distance 2: 0 and 2, 1 and 3: quarters

#include <bit>
#include <cstdint>
#include <vector>

#include "collectives/core/group.h"
#include "collectives/schedule/segment.h"

namespace farandole {

// The largest power of two that is not above `size`: how many ranks take part in the levels.
constexpr int HalvingRanks(int size) { return static_cast<int>(std::bit_floor(static_cast<uint32_t>(size))); }

// Whose input `rank` takes in before the first level, or who takes in that of `rank`; -1 for nobody.
constexpr Rank FoldPartner(int size, Rank rank) {
  const int ranks = HalvingRanks(size);
  if (rank >= ranks) return rank - ranks;
  return rank + ranks < size ? rank + ranks : -1;
}

// One level of a rank that takes part.
struct HalvingLevel {
  int distance = 1;
  Rank peer = 0;
  bool lower = false;  // this rank is the lower one of the two
  Segment keep;        // of what both have
  Segment give;
};

// All levels, from distance 1 on; the last one's `keep` is what is complete at `rank`. The way back takes them in
// reverse order: what is kept goes to the peer, what was given comes from it.
inline std::vector<HalvingLevel> HalvingLevels(int size, Rank rank, int64_t count) {
  std::vector<HalvingLevel> levels;
  Segment have{0, count};
  for (int distance = 1; distance < HalvingRanks(size); distance *= 2) {
    const int64_t middle = have.begin + (have.size() + 1) / 2;
    const Segment first{have.begin, middle}, second{middle, have.end};
    const bool lower = (rank & distance) == 0;
    levels.push_back({distance, rank ^ distance, lower, lower ? first : second, lower ? second : first});
    have = levels.back().keep;
  }
  return levels;
}

}  // namespace farandole
