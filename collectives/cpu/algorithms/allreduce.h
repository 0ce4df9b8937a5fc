#pragma once

#include "absl/status/status.h"
#include "collectives/cpu/algorithms/collective_call.h"
#include "collectives/cpu/algorithms/tensor.h"

namespace farandole {

// The ways to an allreduce, in a group of two or more, for a tensor of one element or more, not for Adasum. Each
// element is reduced at one rank, or at all of them in the same order: so all ranks get the same bytes.

// Everybody's to everybody, each to each in a small group and along a Bruck exchange in a larger one, then reduced in
// rank order at every rank. (size-1) tensors sent. Memory: size chunks.
absl::Status DirectAllReduce(const CollectiveCall& call, const Tensor& tensor);

// Around the ring and around once more (ring_schedule.h), as a pipeline: a chunk goes on as soon as it is reduced.
// 2 (size-1) / size tensors sent, the least there is. Memory: a chunk.
absl::Status RingAllReduce(const CollectiveCall& call, const Tensor& tensor);

// Recursive halving, then doubling (halving_schedule.h): 2 log2(size) steps with the bytes of the ring, and a tensor
// more for the ranks beyond the largest power of two and their partners. Memory: a chunk.
absl::Status HalvingDoublingAllReduce(const CollectiveCall& call, const Tensor& tensor);

}  // namespace farandole
