#pragma once

// Two ways from a root to all others. Pure arithmetic.
//
// The binomial tree doubles the ranks that know in each round: ceil(log2(size)) rounds, for short messages. The chain
// goes from the root around the ring; cut into chunks, all links work at once: (chunks + size - 2) chunk times, for
// long messages, and it uses the links that the ring allreduce has made already.

#include <bit>
#include <cstdint>
#include <vector>

#include "collectives/core/group.h"

namespace farandole {

// Place in the order that starts at the root, and back.
constexpr int PlaceFromRoot(int size, Rank rank, Rank root) { return (rank - root + size) % size; }
constexpr Rank RankOfPlace(int size, int place, Rank root) { return (place + root) % size; }

// Where the place > 0 receives from in the binomial tree: its number without the highest bit.
constexpr int BinomialParent(int place) {
  return place & ~static_cast<int>(std::bit_floor(static_cast<uint32_t>(place)));
}

// Whom the place sends to, in order of rounds (the largest subtree first).
inline std::vector<int> BinomialChildren(int size, int place) {
  std::vector<int> children;
  for (int64_t bit = std::bit_ceil(static_cast<uint32_t>(place + 1)); place + bit < size; bit *= 2) {
    children.push_back(static_cast<int>(place + bit));
  }
  return children;
}

}  // namespace farandole
