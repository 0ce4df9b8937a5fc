#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/cpu/algorithms/collective_call.h"

namespace farandole {

// Everybody's block to everybody, in a group of two or more. `begins` of the lists of blocks has one more: the end.

// For blocks so small that a step costs more than their bytes: each to each in a small group, else along a Bruck
// exchange of ceil(log2(size)) steps. The block of rank r, as long as `own`, comes to stand at BlockPlace(call, r) in
// `blocks`. Everything has left this rank when it returns.
absl::Status GatherEqualBlocks(const CollectiveCall& call, absl::Span<const std::byte> own,
                               absl::Span<std::byte> blocks);
int BlockPlace(const CollectiveCall& call, Rank rank);

// Blocks of any length, along the Bruck exchange through memory of this rank's own, as large as `output`.
absl::Status ShortAllGather(const CollectiveCall& call, absl::Span<const std::byte> input, absl::Span<std::byte> output,
                            absl::Span<const int64_t> begins);

// Around the ring, as a pipeline of chunks. This rank's block stands in its place in `output`.
absl::Status RingAllGather(const CollectiveCall& call, absl::Span<std::byte> output, absl::Span<const int64_t> begins);

// Each to each. This rank's block stands in its place in `output`.
absl::Status DirectAllGather(const CollectiveCall& call, absl::Span<std::byte> output,
                             absl::Span<const int64_t> begins);

// Each rank's own block for each rank. The one for this rank itself is copied. `direct`: all are posted at once, for
// short ones; else in pairs, one distance after the other, so that nobody gets them all at the same time.
absl::Status ExchangeBlocks(const CollectiveCall& call, absl::Span<const std::byte> input,
                            absl::Span<const int64_t> input_begins, absl::Span<std::byte> output,
                            absl::Span<const int64_t> output_begins, bool direct);

// Nobody returns before all have called.
absl::Status Rendezvous(const CollectiveCall& call);

}  // namespace farandole
