#include "collectives/cpu/algorithms/allreduce.h"

#include <algorithm>
#include <vector>

#include "collectives/cpu/algorithms/gather.h"
#include "collectives/cpu/reduce.h"
#include "collectives/schedule/halving_schedule.h"
#include "collectives/schedule/ring_schedule.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Whole segments, chunk by chunk.
absl::Status PostChunks(const CollectiveCall& call, const Tensor& tensor, Rank to, bool of_input, Segment segment) {
  const int64_t chunk = tensor.Chunk(call.chunk_bytes);
  for (int64_t i = 0; i < ChunkCount(segment.size(), chunk); ++i) {
    const Segment part = ChunkOf(segment, chunk, i);
    RETURN_IF_ERROR(call.Post(to, of_input ? tensor.In(part) : tensor.Out(part)));
  }
  return absl::OkStatus();
}

// What comes from `from`, combined with this rank's own, becomes this rank's output.
absl::Status ReduceChunks(const CollectiveCall& call, const Tensor& tensor, Rank from, bool own_is_input,
                          Segment segment) {
  const int64_t chunk = tensor.Chunk(call.chunk_bytes);
  for (int64_t i = 0; i < ChunkCount(segment.size(), chunk); ++i) {
    const Segment part = ChunkOf(segment, chunk, i);
    const absl::Span<std::byte> came = call.Scratch(tensor.Bytes(part));
    RETURN_IF_ERROR(call.Receive(from, came));
    const std::byte* own = own_is_input ? tensor.In(part).data() : tensor.Out(part).data();
    Reduce(tensor.dtype, tensor.op, own, came.data(), tensor.Out(part).data(), part.size());
  }
  return absl::OkStatus();
}

absl::Status ReceiveChunks(const CollectiveCall& call, const Tensor& tensor, Rank from, Segment segment) {
  const int64_t chunk = tensor.Chunk(call.chunk_bytes);
  for (int64_t i = 0; i < ChunkCount(segment.size(), chunk); ++i) {
    RETURN_IF_ERROR(call.Receive(from, tensor.Out(ChunkOf(segment, chunk, i))));
  }
  return absl::OkStatus();
}

absl::Status DirectChunk(const CollectiveCall& call, const Tensor& tensor, Segment part) {
  const int64_t bytes = static_cast<int64_t>(tensor.Bytes(part));
  const absl::Span<std::byte> slots = call.Scratch(bytes * call.size);
  std::vector<const void*> sources(call.size);
  RETURN_IF_ERROR(GatherEqualBlocks(call, tensor.In(part), slots));
  for (Rank r = 0; r < call.size; ++r) sources[r] = slots.data() + BlockPlace(call, r) * bytes;
  ReduceMany(tensor.dtype, tensor.op, sources, tensor.Out(part).data(), nullptr, part.size(),
             tensor.divisor(call.size));
  return absl::OkStatus();
}

}  // namespace

absl::Status DirectAllReduce(const CollectiveCall& call, const Tensor& tensor) {
  const int64_t chunk = tensor.Chunk(call.chunk_bytes);
  for (int64_t i = 0; i < ChunkCount(tensor.count, chunk); ++i) {
    RETURN_IF_ERROR(DirectChunk(call, tensor, ChunkOf(tensor.all(), chunk, i)));
  }
  return absl::OkStatus();
}

// In the first half a rank combines each segment but its own just once, with what came: input, and received partial
// sum, to output. So the input is only read, needs no copy, and may be the output. In the second half finished chunks
// replace it; that one has come says that the next rank has had all that this one sent of it.
absl::Status RingAllReduce(const CollectiveCall& call, const Tensor& tensor) {
  const Rank next = RingNext(call.size, call.rank);
  const Rank previous = RingPrevious(call.size, call.rank);
  const int64_t chunk = tensor.Chunk(call.chunk_bytes);
  const auto segment = [&](int i) { return SegmentOf(tensor.count, call.size, i); };
  const int steps = RingSteps(call.size);
  RETURN_IF_ERROR(PostChunks(call, tensor, next, true, segment(RingReduceScatterStep(call.size, call.rank, 0).out)));
  for (int step = 0; step < steps; ++step) {
    const Segment in = segment(RingReduceScatterStep(call.size, call.rank, step).in);
    const bool finished = step == steps - 1;
    for (int64_t i = 0; i < ChunkCount(in.size(), chunk); ++i) {
      const Segment part = ChunkOf(in, chunk, i);
      RETURN_IF_ERROR(ReduceChunks(call, tensor, previous, true, part));
      if (finished && tensor.op == ReduceOp::kAverage) {
        DivideBy(tensor.dtype, tensor.Out(part).data(), part.size(), call.size);
      }
      RETURN_IF_ERROR(call.Post(next, tensor.Out(part)));
    }
  }
  for (int step = 0; step < steps; ++step) {
    const Segment in = segment(RingGatherOwnedStep(call.size, call.rank, step).in);
    for (int64_t i = 0; i < ChunkCount(in.size(), chunk); ++i) {
      const Segment part = ChunkOf(in, chunk, i);
      RETURN_IF_ERROR(call.Receive(previous, tensor.Out(part)));
      if (step < steps - 1) {
        RETURN_IF_ERROR(call.Post(next, tensor.Out(part)));
      }
    }
  }
  return call.Flush();
}

absl::Status HalvingDoublingAllReduce(const CollectiveCall& call, const Tensor& tensor) {
  const int ranks = HalvingRanks(call.size);
  if (call.rank >= ranks) {
    RETURN_IF_ERROR(PostChunks(call, tensor, call.rank - ranks, true, tensor.all()));
    RETURN_IF_ERROR(ReceiveChunks(call, tensor, call.rank - ranks, tensor.all()));
    return call.Flush();
  }
  const bool folds = call.rank + ranks < call.size;
  if (folds) {
    RETURN_IF_ERROR(ReduceChunks(call, tensor, call.rank + ranks, true, tensor.all()));
  }
  std::vector<HalvingStep> steps;
  Segment stretch = tensor.all();
  bool of_input = !folds;
  for (int distance = ranks / 2; distance >= 1; distance /= 2) {
    const HalvingStep step = HalvingStepOf(call.rank, distance, stretch);
    RETURN_IF_ERROR(PostChunks(call, tensor, step.peer, of_input, step.given));
    RETURN_IF_ERROR(ReduceChunks(call, tensor, step.peer, of_input, step.kept));
    of_input = false;
    stretch = step.kept;
    steps.push_back(step);
  }
  if (tensor.op == ReduceOp::kAverage) {
    DivideBy(tensor.dtype, tensor.Out(stretch).data(), stretch.size(), call.size);
  }
  // What comes back replaces what was given, so the peer has had it.
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    RETURN_IF_ERROR(PostChunks(call, tensor, step->peer, false, step->kept));
    RETURN_IF_ERROR(ReceiveChunks(call, tensor, step->peer, step->given));
  }
  if (folds) {
    RETURN_IF_ERROR(PostChunks(call, tensor, call.rank + ranks, false, tensor.all()));
  }
  return call.Flush();
}

}  // namespace farandole
