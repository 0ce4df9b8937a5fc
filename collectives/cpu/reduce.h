#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "collectives/core/types.h"

namespace farandole {

// The arithmetic of reductions on plain memory, in the widest vectors that the processor has. Pointers need no
// alignment, counts are any. float16 and bfloat16 are computed in float32 and rounded to nearest even once per call;
// integers wrap around; bool is "or" for Sum and Max, "and" for Product and Min, and its result 0 or 1; Min and Max of
// a NaN and anything is a NaN, so that a bad value is seen and not lost. The same bytes on every processor, except that
// where several NaNs meet, whose bits survive is left open. Pure; thread-safe.

// to[i] = a[i] op b[i] for `count` elements. kAverage adds, as kSum does: DivideBy is its second half. `to` is `a`, is
// `b`, or overlaps neither. Combines(dtype, op), and not kAdasum.
void Reduce(DType dtype, ReduceOp op, const void* a, const void* b, void* to, int64_t count);

// to[i] = from[0][i] op from[1][i] op ... for one source or more, combined wide and in this order, rounded once at the
// end; then divided by `divisor` as DivideBy does, if that is more than 1: float types before they are rounded. The
// same is written to `copy` as well, if that is not null, in the same pass. `to` and `copy` each are one of the sources
// or overlap none of them.
void ReduceMany(DType dtype, ReduceOp op, absl::Span<const void* const> from, void* to, void* copy, int64_t count,
                int divisor);

// data[i] = data[i] / divisor: float types in their own precision or wider, integers in float64, truncated toward zero.
// `divisor` > 0. Not for bool.
void DivideBy(DType dtype, void* data, int64_t count, int divisor);

// to[i] = from[i] * factor: float types in their own precision or wider (float32 and narrower: the factor is rounded to
// float32 first), integers in float64, truncated toward zero; what leaves the type's range becomes its nearest end, a
// NaN becomes 0. bool: true stays true unless the factor is 0 or a NaN. `to` is `from` or does not overlap it.
void Scale(DType dtype, const void* from, void* to, int64_t count, double factor);

// to[i] = from[i] in another floating-point type, rounded to nearest even; what is too large becomes infinite, a NaN
// stays one. Between float64 and the 16-bit types through float32, so rounded twice. The two do not overlap.
void Convert(DType from_dtype, const void* from, DType to_dtype, void* to, int64_t count);

}  // namespace farandole
