#include "collectives/cpu/adasum_kernels.h"

#include <cfloat>
#include <cmath>
#include <vector>

#include "collectives/reference/reference.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

using reference::Bytes;

Bytes Numbers(DType dtype, int64_t count, Prng& prng) {
  std::vector<long double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(4 * prng.Unit() - 2);
  return reference::EncodeAll(dtype, values);
}

TEST(AdasumKernels, SumsAndMultiplesAreThoseOfTheReferencesNumbers) {
  Prng prng(1);
  for (DType dtype : kDTypes) {
    if (!IsFloat(dtype)) continue;
    for (int64_t count : {0, 1, 15, 16, 17, 33, 1000, 5001}) {
      const Bytes a = Numbers(dtype, count, prng);
      const Bytes b = Numbers(dtype, count, prng);
      const std::vector<long double> x = reference::DecodeAll(dtype, a);
      const std::vector<long double> y = reference::DecodeAll(dtype, b);
      long double ab = 0, aa = 0, bb = 0;
      for (int64_t i = 0; i < count; ++i) ab += x[i] * y[i], aa += x[i] * x[i], bb += y[i] * y[i];
      const AdasumProducts dots = AdasumDots(dtype, a.data(), b.data(), count);
      const long double tolerance = (aa + bb) * static_cast<long double>(count) * DBL_EPSILON;
      EXPECT_NEAR(dots.ab, ab, tolerance) << dtype;
      EXPECT_NEAR(dots.aa, aa, tolerance) << dtype;
      EXPECT_NEAR(dots.bb, bb, tolerance) << dtype;
      // One rounding of a float64 sum, or of a float32 sum of two products: exactly the nearest, or next to it.
      Bytes to(a.size());
      AdasumCombine(dtype, a.data(), 0.7, b.data(), -1.3, to.data(), count);
      const std::vector<long double> got = reference::DecodeAll(dtype, to);
      const long double unit = dtype == DType::kBfloat16  ? 0x1p-8L
                               : dtype == DType::kFloat16 ? 0x1p-11L
                               : dtype == DType::kFloat32 ? 0x1p-24L
                                                          : 0x1p-53L;
      for (int64_t i = 0; i < count; ++i) {
        const long double want = 0.7L * x[i] - 1.3L * y[i];
        EXPECT_NEAR(got[i], want, 4 * unit * (std::fabs(x[i]) + std::fabs(y[i])) + 0x1p-24L * unit)
            << dtype << " " << i;
      }
      Bytes in_place = a;
      AdasumCombine(dtype, in_place.data(), 0.7, b.data(), -1.3, in_place.data(), count);
      EXPECT_EQ(in_place, to);
    }
  }
}

TEST(AdasumKernels, CoefficientsAreThoseOfTheFormula) {
  const AdasumCoefficients orthogonal = CoefficientsOf({0, 4, 9});
  EXPECT_EQ(orthogonal.a, 1);
  EXPECT_EQ(orthogonal.b, 1);
  const AdasumCoefficients parallel = CoefficientsOf({6, 4, 9});  // a = 2, b = 3: the average
  EXPECT_EQ(parallel.a, 0.25);
  EXPECT_EQ(parallel.b, 1 - 6.0 / 18);
  const AdasumCoefficients nothing = CoefficientsOf({0, 0, 9});
  EXPECT_EQ(nothing.a, 1);
  EXPECT_EQ(nothing.b, 1);
  EXPECT_EQ(CoefficientsOf({1e-160, 0.9 * std::sqrt(DBL_MIN), 1}).a, 1) << "too small to be divided by";
  EXPECT_TRUE(std::isnan(CoefficientsOf({NAN, NAN, 1}).a)) << "a bad value is seen and not lost";
}

}  // namespace
}  // namespace farandole
