#pragma once

// What reduce.h is made of, on the best instructions that this processor has. Chosen at run time.

#include <cstdint>

#include "absl/types/span.h"
#include "collectives/core/types.h"

namespace farandole::internal {

// ReduceMany (reduce.h) with a divisor for float types only; integers are added up.
void CombineInVectors(DType dtype, ReduceOp op, absl::Span<const void* const> from, void* to, void* copy, int64_t count,
                      int divisor);

// to[i] = from[i] * factor, or from[i] / factor, for float types; the factor is rounded to what is computed in.
enum class Scaling { kMultiply, kDivide };
void ScaleInVectors(DType dtype, Scaling scaling, const void* from, void* to, int64_t count, double factor);

// float32 to float16 or bfloat16, or back.
void NarrowInVectors(DType narrow, const void* from, void* to, int64_t count);
void WidenInVectors(DType narrow, const void* from, void* to, int64_t count);

}  // namespace farandole::internal
