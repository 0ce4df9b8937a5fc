#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/core/types.h"
#include "collectives/cpu/algorithms/collective_call.h"

namespace farandole {

// Adasum (Communicator::Adasum) in place, in a group of two or more, by vector halving and distance doubling: in each
// pair of the tree both sides exchange halves, so no rank ever combines more than its part, and the ranks that share a
// vector add up their dots and norms. Each element is combined at one rank: so all ranks get the same bytes. Memory:
// half of the data, all of it at ranks with a partner beyond the largest power of two.
//
// `pieces` (element counts, not negative) stand one after the other in `data`; together at least one element. float
// types only.
absl::Status AdasumInPlace(const CollectiveCall& call, std::byte* data, absl::Span<const int64_t> pieces, DType dtype);

}  // namespace farandole
