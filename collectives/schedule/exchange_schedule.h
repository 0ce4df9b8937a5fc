#pragma once

// Everybody's block to everybody in the fewest steps (Bruck and others, 1997): for messages so small that a step costs
// more than their bytes. Pure arithmetic.
//
// A rank keeps the blocks it has in ring order from its own: rank, rank+1, ... In step k it sends the first ones to
// the rank 2^k below it, and receives from the rank 2^k above it just the blocks that continue its own. With 5 ranks,
// rank 0 has 0 | 1 | 2 3 | 4 after its three steps. The same steps with an empty message are a barrier.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "collectives/core/group.h"

namespace farandole {

struct ExchangeStep {
  Rank to = 0;
  Rank from = 0;
  int blocks = 0;  // how many of the first blocks go to `to`; as many come from `from`
  int have = 0;    // blocks at hand before the step: where the new ones are put
};

// ceil(log2(size)).
constexpr int ExchangeSteps(int size) { return std::bit_width(static_cast<uint32_t>(size - 1)); }

// 0 <= step < ExchangeSteps(size).
constexpr ExchangeStep ExchangeStepOf(int size, Rank rank, int step) {
  const int distance = 1 << step;
  return {(rank - distance + size) % size, (rank + distance) % size, std::min(distance, size - distance), distance};
}

}  // namespace farandole
