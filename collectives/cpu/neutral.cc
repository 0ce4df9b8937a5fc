#include "collectives/cpu/neutral.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "collectives/cpu/half.h"

namespace farandole {
namespace {

template <typename T>
T Value(ReduceOp op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case ReduceOp::kAverage:
    case ReduceOp::kSum:
    case ReduceOp::kAdasum:
      return 0;
    case ReduceOp::kMin:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case ReduceOp::kMax:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceOp::kProduct:
      return 1;
  }
  return 0;
}

template <typename T>
void Fill(T value, void* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(static_cast<std::byte*>(to) + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
  }
}

}  // namespace

void FillNeutral(DType dtype, ReduceOp op, void* to, int64_t count) {
  switch (dtype) {
    case DType::kUint8:
      return Fill(Value<uint8_t>(op), to, count);
    case DType::kInt8:
      return Fill(Value<int8_t>(op), to, count);
    case DType::kUint16:
      return Fill(Value<uint16_t>(op), to, count);
    case DType::kInt16:
      return Fill(Value<int16_t>(op), to, count);
    case DType::kInt32:
      return Fill(Value<int32_t>(op), to, count);
    case DType::kInt64:
      return Fill(Value<int64_t>(op), to, count);
    case DType::kFloat16:
      return Fill(Float16FromFloat(Value<float>(op)), to, count);
    case DType::kFloat32:
      return Fill(Value<float>(op), to, count);
    case DType::kFloat64:
      return Fill(Value<double>(op), to, count);
    case DType::kBool:
      return Fill(std::min<uint8_t>(Value<uint8_t>(op), 1), to, count);
    case DType::kBfloat16:
      return Fill(Bfloat16FromFloat(Value<float>(op)), to, count);
  }
}

}  // namespace farandole
