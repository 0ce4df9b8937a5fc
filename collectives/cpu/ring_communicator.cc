#include "collectives/cpu/ring_communicator.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/cpu/reduce.h"
#include "collectives/schedule/broadcast_schedule.h"
#include "collectives/schedule/exchange_schedule.h"
#include "collectives/schedule/ring_schedule.h"
#include "collectives/schedule/segment.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

void Copy(absl::Span<const std::byte> from, std::byte* to) {
  if (!from.empty() && from.data() != to) std::memmove(to, from.data(), from.size());
}

}  // namespace

// The arguments of one allreduce, and where its parts lie.
struct RingCommunicator::Tensor {
  const std::byte* input;
  std::byte* output;
  int64_t count;
  DType dtype;
  ReduceOp op;

  int64_t bytes() const { return count * SizeOf(dtype); }
  absl::Span<const std::byte> In(Segment s) const { return {input + s.begin * SizeOf(dtype), Bytes(s)}; }
  absl::Span<std::byte> Out(Segment s) const { return {output + s.begin * SizeOf(dtype), Bytes(s)}; }
  size_t Bytes(Segment s) const { return static_cast<size_t>(s.size() * SizeOf(dtype)); }
};

// One block per rank, in ring order from this rank's own, packed in `memory`.
struct RingCommunicator::Blocks {
  std::vector<int64_t> begins;  // of the i-th in ring order; one more: the end
  absl::Span<std::byte> memory;

  absl::Span<std::byte> Range(int begin, int end) const {
    return memory.subspan(begins[begin], begins[end] - begins[begin]);
  }
};

RingCommunicator::RingCommunicator(std::unique_ptr<Transport> transport, Options options)
    : transport_(std::move(transport)),
      options_(options),
      rank_(transport_->rank()),
      size_(transport_->size()),
      scratch_(static_cast<size_t>(std::max(options.chunk_bytes, options.short_bytes))) {}

absl::StatusOr<RingCommunicator::Call> RingCommunicator::Begin(Kind kind, Instant deadline) {
  const Call call{collectives_++ * kKinds + kind, deadline};
  // Sends nothing: asks whether the group is finished, also when the collective itself has nothing to send.
  RETURN_IF_ERROR(SendRecv(call, rank_, {}, rank_, {}));
  return call;
}

absl::Status RingCommunicator::AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                                         Instant deadline) {
  if (count < 0 || count > std::numeric_limits<int64_t>::max() / SizeOf(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("allreduce of ", count, " elements"));
  }
  if (count > 0 && (input == nullptr || output == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("allreduce of ", count, " elements without a buffer"));
  }
  ASSIGN_OR_RETURN(const Call call, Begin(kAllReduce, deadline));
  const Tensor tensor{static_cast<const std::byte*>(input), static_cast<std::byte*>(output), count, dtype, op};
  if (size_ == 1 || count == 0) {
    Copy(tensor.In({0, count}), tensor.output);
    return absl::OkStatus();
  }
  if (tensor.bytes() <= options_.short_bytes / size_) return DirectAllReduce(call, tensor);
  return RingAllReduce(call, tensor);
}

absl::Status RingCommunicator::DirectAllReduce(const Call& call, const Tensor& tensor) {
  const int64_t bytes = tensor.bytes();
  Blocks blocks{std::vector<int64_t>(size_ + 1), absl::MakeSpan(scratch_)};
  for (int i = 0; i <= size_; ++i) blocks.begins[i] = i * bytes;
  Copy(tensor.In({0, tensor.count}), blocks.memory.data());
  RETURN_IF_ERROR(Exchange(call, blocks));
  // In rank order at every rank. The block of rank 0 gathers the result: the output may be the input.
  auto block_of = [&](Rank rank) { return blocks.Range(PlaceFromRoot(size_, rank, rank_), size_).data(); };
  std::byte* result = block_of(0);
  for (Rank rank = 1; rank < size_; ++rank) {
    Reduce(tensor.dtype, tensor.op, result, block_of(rank), result, tensor.count);
  }
  if (tensor.op == ReduceOp::kAverage) DivideBy(tensor.dtype, result, tensor.count, size_);
  Copy({result, static_cast<size_t>(bytes)}, tensor.output);
  return absl::OkStatus();
}

// Segment by segment around the ring (ring_schedule.h). In the first half a rank combines each segment but its own just
// once, with what came: input, and received partial sum, to output. So the input is only read, needs no copy, and may
// be the output.
absl::Status RingCommunicator::RingAllReduce(const Call& call, const Tensor& tensor) {
  for (int step = 0; step < RingSteps(size_); ++step) RETURN_IF_ERROR(RingReduceStep(call, tensor, step));
  if (tensor.op == ReduceOp::kAverage) {
    const Segment owned = SegmentOf(tensor.count, size_, RingOwnedSegment(size_, rank_));
    DivideBy(tensor.dtype, tensor.Out(owned).data(), owned.size(), size_);
  }
  for (int step = 0; step < RingSteps(size_); ++step) RETURN_IF_ERROR(RingGatherStep(call, tensor, step));
  return absl::OkStatus();
}

absl::Status RingCommunicator::RingReduceStep(const Call& call, const Tensor& tensor, int step) {
  const RingStep now = RingReduceScatterStep(size_, rank_, step);
  const Segment out = SegmentOf(tensor.count, size_, now.out);
  const Segment in = SegmentOf(tensor.count, size_, now.in);
  const int64_t chunk = options_.chunk_bytes / SizeOf(tensor.dtype);
  // Neighbouring segments may differ by one element, so one direction may have a chunk more than the other.
  const int64_t chunks = ChunkCount(std::max(out.size(), in.size()), chunk);
  for (int64_t i = 0; i < chunks; ++i) {
    const Segment sent = ChunkOf(out, chunk, i);
    const Segment combined = ChunkOf(in, chunk, i);
    const absl::Span<std::byte> came = absl::MakeSpan(scratch_).subspan(0, tensor.Bytes(combined));
    RETURN_IF_ERROR(SendRecv(call, RingNext(size_, rank_), step == 0 ? tensor.In(sent) : tensor.Out(sent),
                             RingPrevious(size_, rank_), came));
    Reduce(tensor.dtype, tensor.op, came.data(), tensor.In(combined).data(), tensor.Out(combined).data(),
           combined.size());
  }
  return absl::OkStatus();
}

absl::Status RingCommunicator::RingGatherStep(const Call& call, const Tensor& tensor, int step) {
  const RingStep now = RingGatherOwnedStep(size_, rank_, step);
  const Segment out = SegmentOf(tensor.count, size_, now.out);
  const Segment in = SegmentOf(tensor.count, size_, now.in);
  const int64_t chunk = options_.chunk_bytes / SizeOf(tensor.dtype);
  const int64_t chunks = ChunkCount(std::max(out.size(), in.size()), chunk);
  for (int64_t i = 0; i < chunks; ++i) {
    RETURN_IF_ERROR(SendRecv(call, RingNext(size_, rank_), tensor.Out(ChunkOf(out, chunk, i)),
                             RingPrevious(size_, rank_), tensor.Out(ChunkOf(in, chunk, i))));
  }
  return absl::OkStatus();
}

// Fills `blocks`, of which the first stands there.
absl::Status RingCommunicator::Exchange(const Call& call, Blocks& blocks) {
  for (int step = 0; step < ExchangeSteps(size_); ++step) {
    const ExchangeStep now = ExchangeStepOf(size_, rank_, step);
    RETURN_IF_ERROR(
        SendRecv(call, now.to, blocks.Range(0, now.blocks), now.from, blocks.Range(now.have, now.have + now.blocks)));
  }
  return absl::OkStatus();
}

absl::Status RingCommunicator::AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                                         absl::Span<const int64_t> bytes, Instant deadline) {
  if (static_cast<int>(bytes.size()) != size_ ||
      std::any_of(bytes.begin(), bytes.end(), [](int64_t b) { return b < 0; })) {
    return absl::InvalidArgumentError(absl::StrCat("allgather in a group of ", size_, ": wrong list of sizes"));
  }
  std::vector<int64_t> begins(size_ + 1, 0);
  std::partial_sum(bytes.begin(), bytes.end(), begins.begin() + 1);
  if (static_cast<int64_t>(input.size()) != bytes[rank_] || static_cast<int64_t>(output.size()) != begins[size_]) {
    return absl::InvalidArgumentError(absl::StrCat("allgather: rank ", rank_, " gives ", input.size(), " and expects ",
                                                   output.size(), " bytes, the list of sizes says ", bytes[rank_],
                                                   " and ", begins[size_]));
  }
  ASSIGN_OR_RETURN(const Call call, Begin(kAllGather, deadline));
  if (size_ > 1 && begins[size_] <= options_.short_bytes) return ShortAllGather(call, input, output, bytes);
  Copy(input, output.data() + begins[rank_]);
  return RingAllGather(call, output, begins);
}

absl::Status RingCommunicator::ShortAllGather(const Call& call, absl::Span<const std::byte> input,
                                              absl::Span<std::byte> output, absl::Span<const int64_t> bytes) {
  Blocks blocks{std::vector<int64_t>(size_ + 1, 0), absl::MakeSpan(scratch_)};
  for (int i = 0; i < size_; ++i) blocks.begins[i + 1] = blocks.begins[i] + bytes[RankOfPlace(size_, i, rank_)];
  Copy(input, blocks.memory.data());
  RETURN_IF_ERROR(Exchange(call, blocks));
  std::byte* to = output.data();
  for (Rank rank = 0; rank < size_; ++rank) {
    const int place = PlaceFromRoot(size_, rank, rank_);
    Copy(blocks.Range(place, place + 1), to);
    to += bytes[rank];
  }
  return absl::OkStatus();
}

absl::Status RingCommunicator::RingAllGather(const Call& call, absl::Span<std::byte> output,
                                             absl::Span<const int64_t> begins) {
  auto block = [&](int i) { return output.subspan(begins[i], begins[i + 1] - begins[i]); };
  for (int step = 0; step < RingSteps(size_); ++step) {
    const RingStep now = RingAllGatherStep(size_, rank_, step);
    RETURN_IF_ERROR(SendRecv(call, RingNext(size_, rank_), block(now.out), RingPrevious(size_, rank_), block(now.in)));
  }
  return absl::OkStatus();
}

absl::Status RingCommunicator::Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) {
  if (root < 0 || root >= size_) {
    return absl::InvalidArgumentError(absl::StrCat("broadcast from rank ", root, " in a group of ", size_));
  }
  ASSIGN_OR_RETURN(const Call call, Begin(kBroadcast, deadline));
  if (size_ == 1) return absl::OkStatus();
  if (static_cast<int64_t>(data.size()) <= options_.short_bytes) return TreeBroadcast(call, data, root);
  return ChainBroadcast(call, data, root);
}

absl::Status RingCommunicator::TreeBroadcast(const Call& call, absl::Span<std::byte> data, Rank root) {
  const int place = PlaceFromRoot(size_, rank_, root);
  if (place > 0) {
    RETURN_IF_ERROR(SendRecv(call, rank_, {}, RankOfPlace(size_, BinomialParent(place), root), data));
  }
  for (int child : BinomialChildren(size_, place)) {
    RETURN_IF_ERROR(SendRecv(call, RankOfPlace(size_, child, root), data, rank_, {}));
  }
  return absl::OkStatus();
}

// Each rank passes chunk i-1 on while chunk i comes in. The root receives none, the last one sends none.
absl::Status RingCommunicator::ChainBroadcast(const Call& call, absl::Span<std::byte> data, Rank root) {
  const int place = PlaceFromRoot(size_, rank_, root);
  const Segment all{0, static_cast<int64_t>(data.size())};
  const int64_t chunks = ChunkCount(all.size(), options_.chunk_bytes);
  auto chunk = [&](int64_t i, bool wanted) {
    const Segment s = wanted && i >= 0 ? ChunkOf(all, options_.chunk_bytes, i) : Segment{};
    return data.subspan(s.begin, s.size());
  };
  for (int64_t i = 0; i <= chunks; ++i) {
    RETURN_IF_ERROR(SendRecv(call, RingNext(size_, rank_), chunk(i - 1, place < size_ - 1), RingPrevious(size_, rank_),
                             chunk(i, place > 0)));
  }
  return absl::OkStatus();
}

absl::Status RingCommunicator::Barrier(Instant deadline) {
  ASSIGN_OR_RETURN(const Call call, Begin(kBarrier, deadline));
  const std::byte here{1};
  std::byte there{0};
  for (int step = 0; step < ExchangeSteps(size_); ++step) {
    const ExchangeStep now = ExchangeStepOf(size_, rank_, step);
    RETURN_IF_ERROR(SendRecv(call, now.to, absl::MakeConstSpan(&here, 1), now.from, absl::MakeSpan(&there, 1)));
  }
  return absl::OkStatus();
}

absl::Status RingCommunicator::Adasum(void* data, absl::Span<const int64_t> pieces, DType dtype, Instant deadline) {
  return absl::UnimplementedError("base");
}
absl::Status RingCommunicator::ReduceScatter(const void* input, void* output, absl::Span<const int64_t> counts,
                                             DType dtype, ReduceOp op, Instant deadline) {
  return absl::UnimplementedError("base");
}
absl::Status RingCommunicator::AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to,
                                        absl::Span<std::byte> output, absl::Span<const int64_t> from,
                                        Instant deadline) {
  return absl::UnimplementedError("base");
}
absl::Status RingCommunicator::Send(absl::Span<const std::byte> data, Rank to, Instant deadline) {
  return absl::UnimplementedError("base");
}
absl::Status RingCommunicator::Receive(absl::Span<std::byte> data, Rank from, Instant deadline) {
  return absl::UnimplementedError("base");
}

}  // namespace farandole
