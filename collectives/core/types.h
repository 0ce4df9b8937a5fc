#pragma once

#include <cstdint>
#include <ostream>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace farandole {

// Element types. The values are those of the C ABI (worker/capi/farandole.h) and of the engine's wire; they never
// change.
enum class DType : uint8_t {
  kUint8 = 0,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,  // IEEE 754 binary16; reduced in float32, rounded to nearest even once per step
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 10,  // upper half of a binary32; reduced as float16 is
};

// The original's numbers (horovod: Average 0 ... Product 5). kAdasum (2) is refused until it exists.
enum class ReduceOp : uint8_t {
  kAverage = 0,  // the sum divided by the size of the group; integers: divided in float64, truncated toward zero
  kSum = 1,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
};

// All of them, for tables and tests.
inline constexpr DType kDTypes[] = {DType::kUint8,   DType::kInt32,   DType::kInt64,   DType::kFloat16,
                                    DType::kFloat32, DType::kFloat64, DType::kBfloat16};
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                                          ReduceOp::kProduct};

// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 1;
    case DType::kFloat16:
    case DType::kBfloat16:
      return 2;
    case DType::kInt32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kFloat64:
      return 8;
  }
  return 0;
}

// "float32", "average": the words of messages to people.
absl::string_view Name(DType dtype);
absl::string_view Name(ReduceOp op);

// From a wire's or the C ABI's number; nullopt for one that means nothing here.
absl::optional<DType> DTypeFromNumber(int64_t number);
absl::optional<ReduceOp> ReduceOpFromNumber(int64_t number);

inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << Name(dtype); }
inline std::ostream& operator<<(std::ostream& out, ReduceOp op) { return out << Name(op); }

}  // namespace farandole
