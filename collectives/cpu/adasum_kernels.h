#pragma once

#include <cstdint>

#include "collectives/core/types.h"

namespace farandole {

// The arithmetic of Adasum (Communicator::Adasum) on plain memory, for floating point types, computed in float64. No
// alignment is needed. Pure; thread-safe.

// Dot products of two vectors, or of pieces of them: those of pieces add up.
struct AdasumDots {
  double ab = 0, aa = 0, bb = 0;
};
AdasumDots DotsOf(DType dtype, const void* a, const void* b, int64_t count);

// The factors of a and b in their combination.
struct AdasumFactors {
  double a = 1, b = 1;
};
AdasumFactors FactorsOf(const AdasumDots& dots);

// to[i] = factors.a * a[i] + factors.b * b[i], rounded once. `to` is `a`, is `b`, or overlaps neither.
void Combine(DType dtype, const AdasumFactors& factors, const void* a, const void* b, void* to, int64_t count);

}  // namespace farandole
