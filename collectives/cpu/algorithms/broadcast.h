#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/cpu/algorithms/collective_call.h"

namespace farandole {

// `data` of `root` to all others, in a group of two or more.

// A binomial tree: ceil(log2(size)) steps, each with all bytes. For short messages.
absl::Status TreeBroadcast(const CollectiveCall& call, absl::Span<std::byte> data, Rank root);

// Along the ring from the root in chunks: each rank sends all bytes once, but the last one gets its first chunk after
// size - 2 others. For long messages.
absl::Status ChainBroadcast(const CollectiveCall& call, absl::Span<std::byte> data, Rank root, int64_t chunk_bytes);

// The root deals the parts out, and a ring puts them together everywhere: two times the bytes of the chain in many
// fewer steps. For what lies between, in groups of many.
absl::Status ScatterBroadcast(const CollectiveCall& call, absl::Span<std::byte> data, Rank root);

}  // namespace farandole
