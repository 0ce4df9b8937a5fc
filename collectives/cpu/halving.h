#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"
#include "collectives/core/types.h"

namespace farandole {

// The collectives that go by schedule/halving_schedule.h, over whatever exchanges bytes.

// Sends and receives at once, as Transport::SendRecv does.
using Exchange =
    std::function<absl::Status(Rank to, absl::Span<const std::byte> out, Rank from, absl::Span<std::byte> in)>;

// What both need: a rank of a group, its bytes, which become the result, and memory that grows to the same size.
struct HalvingTask {
  int size = 1;
  Rank rank = 0;
  std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
  std::vector<std::byte>* scratch = nullptr;
};

// Allreduce of `count` elements in place. Average is left to the caller: it adds.
absl::Status HalvingAllReduce(const HalvingTask& task, int64_t count, ReduceOp op, const Exchange& exchange);

// Communicator::Adasum, by vector halving and distance doubling: in each level the ranks that share two vectors add up
// the dots of their parts of them (Maleki and others, 2020, section 3.2).
absl::Status HalvingAdasum(const HalvingTask& task, absl::Span<const int64_t> pieces, const Exchange& exchange);

}  // namespace farandole
