#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/core/types.h"

namespace farandole {

// The arguments of a reduction.
struct Reduction {
  const void* input;
  void* output;
  int64_t count;
  DType dtype;
  ReduceOp op;

  int64_t width() const { return SizeOf(dtype); }
  const std::byte* In(int64_t element) const { return static_cast<const std::byte*>(input) + element * width(); }
  std::byte* Out(int64_t element) const { return static_cast<std::byte*>(output) + element * width(); }
};

}  // namespace farandole
