#include "collectives/core/types.h"

namespace farandole {

absl::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "uint8";
    case DType::kInt8:
      return "int8";
    case DType::kUint16:
      return "uint16";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kBool:
      return "bool";
    case DType::kBfloat16:
      return "bfloat16";
  }
  return "unknown";
}

absl::string_view Name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAdasum:
      return "adasum";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
  }
  return "unknown";
}

absl::optional<DType> DTypeFromNumber(int64_t number) {
  for (DType dtype : kDTypes) {
    if (static_cast<int64_t>(dtype) == number) return dtype;
  }
  return absl::nullopt;
}

absl::optional<ReduceOp> ReduceOpFromNumber(int64_t number) {
  for (ReduceOp op : kReduceOps) {
    if (static_cast<int64_t>(op) == number) return op;
  }
  return absl::nullopt;
}

}  // namespace farandole
