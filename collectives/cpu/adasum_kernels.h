#pragma once

#include <cstdint>

#include "collectives/core/types.h"

namespace farandole {

// The arithmetic of Communicator::Adasum on plain memory. Floating-point types only; pointers need no alignment. Pure;
// thread-safe. The same values on every processor: sums are taken in one fixed order.

// Sums over the elements of two vectors, or of parts of them: parts are added up by +=, in one order on all ranks.
struct AdasumProducts {
  double ab = 0;
  double aa = 0;
  double bb = 0;

  AdasumProducts& operator+=(const AdasumProducts& other) {
    ab += other.ab, aa += other.aa, bb += other.bb;
    return *this;
  }
};

// a.b, |a|^2 and |b|^2 of `count` elements, in float64.
AdasumProducts AdasumDots(DType dtype, const void* a, const void* b, int64_t count);

// What each side is multiplied by, given the sums over the whole piece: 1 - ab / (2 aa), and 1 - ab / (2 bb); 1 for a
// side whose squared norm is below sqrt(DBL_MIN).
struct AdasumCoefficients {
  double a = 1;
  double b = 1;
};
AdasumCoefficients CoefficientsOf(const AdasumProducts& dots);

// to[i] = ca * a[i] + cb * b[i]: float64 and float32 in float64, float16 and bfloat16 in float32 (the coefficients are
// rounded to it first); rounded to the type once. `to` is `a`, is `b`, or overlaps neither.
void AdasumCombine(DType dtype, const void* a, double ca, const void* b, double cb, void* to, int64_t count);

}  // namespace farandole
