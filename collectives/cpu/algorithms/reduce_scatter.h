#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/cpu/algorithms/collective_call.h"
#include "collectives/cpu/algorithms/tensor.h"

namespace farandole {

// Reduction of this rank's share, in a group of two or more. `tensor.input` holds the shares of all ranks, `begins` (in
// elements; one more: the end) says where; `tensor.output` gets this rank's share. It does not overlap the input.

// Each rank sends each its part, which is reduced in rank order, wide and rounded once. Memory: a chunk of each rank.
absl::Status PairwiseReduceScatter(const CollectiveCall& call, const Tensor& tensor, absl::Span<const int64_t> begins);

// Around the ring: neighbours only. Memory: two times the longest share.
absl::Status RingReduceScatter(const CollectiveCall& call, const Tensor& tensor, absl::Span<const int64_t> begins);

}  // namespace farandole
