#include "collectives/cpu/adasum_kernels.h"

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "collectives/cpu/half.h"
#include "tools/base/check.h"

namespace farandole {
namespace {

template <typename T>
T Read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double ReadAsDouble(DType dtype, const void* data, int64_t i) {
  const std::byte* at = static_cast<const std::byte*>(data) + i * SizeOf(dtype);
  switch (dtype) {
    case DType::kFloat16:
      return FloatFromFloat16(Read<uint16_t>(at));
    case DType::kBfloat16:
      return FloatFromBfloat16(Read<uint16_t>(at));
    case DType::kFloat32:
      return Read<float>(at);
    case DType::kFloat64:
      return Read<double>(at);
    default:
      CHECK(false) << "Adasum of " << Name(dtype);
      return 0;
  }
}

template <typename T>
void Put(T value, void* data, int64_t i) {
  std::memcpy(static_cast<std::byte*>(data) + i * sizeof value, &value, sizeof value);
}

}  // namespace

AdasumDots DotsForAdasum(DType dtype, const void* a, const void* b, int64_t count) {
  AdasumDots dots;
  for (int64_t i = 0; i < count; ++i) {
    const double x = ReadAsDouble(dtype, a, i);
    const double y = ReadAsDouble(dtype, b, i);
    dots += AdasumDots{x * y, x * x, y * y};
  }
  return dots;
}

AdasumCoefficients CoefficientsForAdasum(const AdasumDots& dots) {
  const double nothing = std::sqrt(DBL_MIN);
  AdasumCoefficients coefficients;
  if (!(dots.aa < nothing)) coefficients.a = 1 - dots.ab / (2 * dots.aa);
  if (!(dots.bb < nothing)) coefficients.b = 1 - dots.ab / (2 * dots.bb);
  return coefficients;
}

void AdasumCombine(DType dtype, const void* a, double ca, const void* b, double cb, void* to, int64_t count) {
  const float fa = static_cast<float>(ca);
  const float fb = static_cast<float>(cb);
  for (int64_t i = 0; i < count; ++i) {
    const double x = ReadAsDouble(dtype, a, i);
    const double y = ReadAsDouble(dtype, b, i);
    const float half = fa * static_cast<float>(x) + fb * static_cast<float>(y);
    if (dtype == DType::kFloat64) Put(ca * x + cb * y, to, i);
    if (dtype == DType::kFloat32) Put(static_cast<float>(ca * x + cb * y), to, i);
    if (dtype == DType::kFloat16) Put(Float16FromFloat(half), to, i);
    if (dtype == DType::kBfloat16) Put(Bfloat16FromFloat(half), to, i);
  }
}

}  // namespace farandole
