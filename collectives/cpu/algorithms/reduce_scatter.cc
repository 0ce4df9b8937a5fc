#include "collectives/cpu/algorithms/reduce_scatter.h"

#include <algorithm>
#include <vector>

#include "collectives/cpu/reduce.h"
#include "collectives/schedule/ring_schedule.h"
#include "tools/base/status_macros.h"

namespace farandole {

absl::Status PairwiseReduceScatter(const CollectiveCall& call, const Tensor& tensor, absl::Span<const int64_t> begins) {
  const int64_t chunk = tensor.Chunk(std::max<int64_t>(call.chunk_bytes / (call.size - 1), call.chunk_bytes / 8));
  const Segment own = BlockOf(begins, call.rank);
  for (int d = 1; d < call.size; ++d) {
    const Segment theirs = BlockOf(begins, call.After(d));
    for (int64_t i = 0; i < ChunkCount(theirs.size(), chunk); ++i) {
      RETURN_IF_ERROR(call.Post(call.After(d), tensor.In(ChunkOf(theirs, chunk, i))));
    }
  }
  std::vector<const void*> sources(call.size);
  const int64_t slot = chunk * SizeOf(tensor.dtype);
  const absl::Span<std::byte> slots = call.Scratch(std::min(slot, static_cast<int64_t>(tensor.Bytes(own))) * call.size);
  for (int64_t i = 0; i < ChunkCount(own.size(), chunk); ++i) {
    const Segment part = ChunkOf(own, chunk, i);
    const size_t bytes = tensor.Bytes(part);
    for (int d = 1; d < call.size; ++d) {
      const absl::Span<std::byte> came = slots.subspan((d - 1) * bytes, bytes);
      RETURN_IF_ERROR(call.Receive(call.Before(d), came));
      sources[call.Before(d)] = came.data();
    }
    sources[call.rank] = tensor.In(part).data();
    std::byte* to = tensor.output + (part.begin - own.begin) * SizeOf(tensor.dtype);
    ReduceMany(tensor.dtype, tensor.op, sources, to, nullptr, part.size(), tensor.divisor(call.size));
  }
  return call.Flush();
}

// Segment s of the ring is the share of the rank before, since the ring ends a segment there.
absl::Status RingReduceScatter(const CollectiveCall& call, const Tensor& tensor, absl::Span<const int64_t> begins) {
  const Rank next = RingNext(call.size, call.rank);
  const Rank previous = RingPrevious(call.size, call.rank);
  const int64_t chunk = tensor.Chunk(call.chunk_bytes);
  const auto share = [&](int segment) { return BlockOf(begins, RingPrevious(call.size, segment)); };
  int64_t longest = 0;
  for (Rank r = 0; r < call.size; ++r) longest = std::max(longest, BlockOf(begins, r).size());
  const int64_t room = longest * SizeOf(tensor.dtype);
  const absl::Span<std::byte> scratch = call.Scratch(2 * room);
  for (int step = 0; step < RingSteps(call.size); ++step) {
    const RingStep now = RingReduceScatterStep(call.size, call.rank, step);
    const Segment out = share(now.out);
    const Segment in = share(now.in);
    // The partial sums of one step stand in one half, and leave while those of the next step come into the other.
    const std::byte* sent = step == 0 ? tensor.In(out).data() : scratch.data() + ((step - 1) % 2) * room;
    std::byte* sums = step == RingSteps(call.size) - 1 ? tensor.output : scratch.data() + (step % 2) * room;
    for (int64_t i = 0; i < ChunkCount(std::max(in.size(), out.size()), chunk); ++i) {
      const Segment part = ChunkOf({0, in.size()}, chunk, i);
      const Segment passed = ChunkOf({0, out.size()}, chunk, i);
      std::byte* sum = sums + part.begin * SizeOf(tensor.dtype);
      RETURN_IF_ERROR(call.Post(next, {sent + passed.begin * SizeOf(tensor.dtype), tensor.Bytes(passed)}));
      RETURN_IF_ERROR(call.Receive(previous, {sum, tensor.Bytes(part)}));
      const Segment mine{in.begin + part.begin, in.begin + part.end};
      Reduce(tensor.dtype, tensor.op, tensor.In(mine).data(), sum, sum, part.size());
    }
    // The next rank receives in the same step what is posted in it, so this does not wait in a circle.
    RETURN_IF_ERROR(call.Flush());
  }
  if (tensor.op == ReduceOp::kAverage) {
    DivideBy(tensor.dtype, tensor.output, BlockOf(begins, call.rank).size(), call.size);
  }
  return absl::OkStatus();
}

}  // namespace farandole
