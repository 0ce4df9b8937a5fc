#pragma once

#include <cstdint>

#include "collectives/core/types.h"

namespace farandole {

// Fills `to` with what changes nothing when it is combined with `op`: 0 for sums and Adasum, 1 for products, the
// largest value for Min and the smallest for Max (infinite for floating point). No alignment is needed. Pure;
// thread-safe.
void FillNeutral(DType dtype, ReduceOp op, void* to, int64_t count);

}  // namespace farandole
