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
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,  // IEEE 754 binary16; reduced in float32, rounded to nearest even once per step
  kFloat32 = 7,
  kFloat64 = 8,
  kBool = 9,       // one byte; not 0 counts as 1. Sum and Max are "or", Product and Min "and"; no Average
  kBfloat16 = 10,  // upper half of a binary32; reduced as float16 is
};

// The original's numbers (horovod: Average 0 ... Product 5).
enum class ReduceOp : uint8_t {
  kAverage = 0,  // the sum divided by the size of the group; integers: divided in float64, truncated toward zero
  kSum = 1,      // integers wrap around
  kAdasum = 2,   // floating point only: see Communicator::Adasum
  kMin = 3,
  kMax = 4,
  kProduct = 5,
};

// All of them, for tables and tests.
inline constexpr DType kDTypes[] = {DType::kUint8,   DType::kInt8,  DType::kUint16,  DType::kInt16,
                                    DType::kInt32,   DType::kInt64, DType::kFloat16, DType::kFloat32,
                                    DType::kFloat64, DType::kBool,  DType::kBfloat16};
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kAdasum,
                                          ReduceOp::kMin,     ReduceOp::kMax, ReduceOp::kProduct};

// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kInt8:
    case DType::kBool:
      return 1;
    case DType::kUint16:
    case DType::kInt16:
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

constexpr bool IsFloat(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

// Whether elements of this type can be combined this way: Average of bool and Adasum of what is not floating point
// cannot.
constexpr bool Combines(DType dtype, ReduceOp op) {
  if (op == ReduceOp::kAdasum) return IsFloat(dtype);
  return dtype != DType::kBool || op != ReduceOp::kAverage;
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
