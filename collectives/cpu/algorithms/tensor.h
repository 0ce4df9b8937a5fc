#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "collectives/core/types.h"
#include "collectives/schedule/segment.h"

namespace farandole {

// What a reduction works on, in elements. `output` is `input` or does not overlap it.
struct Tensor {
  const std::byte* input;
  std::byte* output;
  int64_t count;
  DType dtype;
  ReduceOp op;

  int64_t bytes() const { return count * SizeOf(dtype); }
  Segment all() const { return {0, count}; }
  absl::Span<const std::byte> In(Segment s) const { return {input + s.begin * SizeOf(dtype), Bytes(s)}; }
  absl::Span<std::byte> Out(Segment s) const { return {output + s.begin * SizeOf(dtype), Bytes(s)}; }
  size_t Bytes(Segment s) const { return static_cast<size_t>(s.size() * SizeOf(dtype)); }

  // How many elements make a chunk.
  int64_t Chunk(int64_t chunk_bytes) const { return std::max<int64_t>(1, chunk_bytes / SizeOf(dtype)); }
  // What the sum is to be divided by.
  int divisor(int size) const { return op == ReduceOp::kAverage ? size : 1; }
};

}  // namespace farandole
