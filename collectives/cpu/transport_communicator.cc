#include "collectives/cpu/transport_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/cpu/arguments.h"
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
struct TransportCommunicator::Tensor {
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
struct TransportCommunicator::Blocks {
  std::vector<int64_t> begins;  // of the i-th in ring order; one more: the end
  absl::Span<std::byte> memory;

  absl::Span<std::byte> Range(int begin, int end) const {
    return memory.subspan(begins[begin], begins[end] - begins[begin]);
  }
};

TransportCommunicator::TransportCommunicator(std::unique_ptr<Transport> transport, Options options)
    : transport_(std::move(transport)),
      options_(options),
      rank_(transport_->rank()),
      size_(transport_->size()),
      sent_(size_),
      received_(size_),
      scratch_(static_cast<size_t>(std::max(options.chunk_bytes, options.short_bytes))) {}

absl::StatusOr<TransportCommunicator::Call> TransportCommunicator::Begin(Kind kind, Instant deadline) {
  const Call call{collectives_++ * kKinds + kind, deadline};
  RETURN_IF_ERROR(CheckAlive(call));
  return call;
}

absl::StatusOr<TransportCommunicator::Call> TransportCommunicator::BeginBetween(uint64_t& before, Instant deadline) {
  const Call call{before++ * kKinds + kPointToPoint, deadline};
  RETURN_IF_ERROR(CheckAlive(call));
  return call;
}

Exchange TransportCommunicator::ExchangeOf(const Call& call) {
  return [this, call](Rank to, absl::Span<const std::byte> out, Rank from, absl::Span<std::byte> in) {
    return SendRecv(call, to, out, from, in);
  };
}

absl::Status TransportCommunicator::AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                                              Instant deadline) {
  RETURN_IF_ERROR(CheckAllReduce(input, output, count, dtype, op));
  if (op == ReduceOp::kAdasum) {
    Copy({static_cast<const std::byte*>(input), static_cast<size_t>(count * SizeOf(dtype))},
         static_cast<std::byte*>(output));
    return Adasum(output, {count}, dtype, deadline);
  }
  ASSIGN_OR_RETURN(const Call call, Begin(kAllReduce, deadline));
  const Tensor tensor{static_cast<const std::byte*>(input), static_cast<std::byte*>(output), count, dtype, op};
  if (size_ == 1 || count == 0) {
    Copy(tensor.In({0, count}), tensor.output);
    return absl::OkStatus();
  }
  switch (ForAllReduce(tensor.bytes())) {
    case Algorithm::kDirect:
      return DirectAllReduce(call, tensor);
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingAllReduce(call, tensor);
    default:
      return RingAllReduce(call, tensor);
  }
}

Algorithm TransportCommunicator::ForAllReduce(int64_t bytes) const {
  if (tuning_.allreduce != Algorithm::kAuto && tuning_.allreduce != Algorithm::kHierarchical) return tuning_.allreduce;
  if (bytes <= options_.short_bytes / size_) return Algorithm::kDirect;
  // Fewer steps, and the whole half at once: worth it while a step costs more than the bytes of it.
  return size_ > 2 && bytes <= options_.halving_bytes ? Algorithm::kHalvingDoubling : Algorithm::kRing;
}

absl::Status TransportCommunicator::HalvingDoublingAllReduce(const Call& call, const Tensor& tensor) {
  Copy(tensor.In({0, tensor.count}), tensor.output);
  const HalvingTask task{size_, rank_, tensor.output, tensor.dtype, &scratch_};
  RETURN_IF_ERROR(HalvingAllReduce(task, tensor.count, tensor.op, ExchangeOf(call)));
  if (tensor.op == ReduceOp::kAverage) DivideBy(tensor.dtype, tensor.output, tensor.count, size_);
  return absl::OkStatus();
}

absl::Status TransportCommunicator::DirectAllReduce(const Call& call, const Tensor& tensor) {
  const int64_t bytes = tensor.bytes();
  if (static_cast<int64_t>(scratch_.size()) < bytes * size_) scratch_.resize(static_cast<size_t>(bytes * size_));
  Blocks blocks{std::vector<int64_t>(size_ + 1), absl::MakeSpan(scratch_)};
  for (int i = 0; i <= size_; ++i) blocks.begins[i] = i * bytes;
  Copy(tensor.In({0, tensor.count}), blocks.memory.data());
  RETURN_IF_ERROR(PassBlocks(call, blocks));
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
absl::Status TransportCommunicator::RingAllReduce(const Call& call, const Tensor& tensor) {
  for (int step = 0; step < RingSteps(size_); ++step) RETURN_IF_ERROR(RingReduceStep(call, tensor, step));
  if (tensor.op == ReduceOp::kAverage) {
    const Segment owned = SegmentOf(tensor.count, size_, RingOwnedSegment(size_, rank_));
    DivideBy(tensor.dtype, tensor.Out(owned).data(), owned.size(), size_);
  }
  for (int step = 0; step < RingSteps(size_); ++step) RETURN_IF_ERROR(RingGatherStep(call, tensor, step));
  return absl::OkStatus();
}

absl::Status TransportCommunicator::RingReduceStep(const Call& call, const Tensor& tensor, int step) {
  const RingStep now = RingReduceScatterStep(size_, rank_, step);
  const Segment out = SegmentOf(tensor.count, size_, now.out);
  const Segment in = SegmentOf(tensor.count, size_, now.in);
  const int64_t chunk = chunk_bytes() / SizeOf(tensor.dtype);
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

absl::Status TransportCommunicator::RingGatherStep(const Call& call, const Tensor& tensor, int step) {
  const RingStep now = RingGatherOwnedStep(size_, rank_, step);
  const Segment out = SegmentOf(tensor.count, size_, now.out);
  const Segment in = SegmentOf(tensor.count, size_, now.in);
  const int64_t chunk = chunk_bytes() / SizeOf(tensor.dtype);
  const int64_t chunks = ChunkCount(std::max(out.size(), in.size()), chunk);
  for (int64_t i = 0; i < chunks; ++i) {
    RETURN_IF_ERROR(SendRecv(call, RingNext(size_, rank_), tensor.Out(ChunkOf(out, chunk, i)),
                             RingPrevious(size_, rank_), tensor.Out(ChunkOf(in, chunk, i))));
  }
  return absl::OkStatus();
}

// Fills `blocks`, of which the first stands there.
absl::Status TransportCommunicator::PassBlocks(const Call& call, Blocks& blocks) {
  for (int step = 0; step < ExchangeSteps(size_); ++step) {
    const ExchangeStep now = ExchangeStepOf(size_, rank_, step);
    RETURN_IF_ERROR(
        SendRecv(call, now.to, blocks.Range(0, now.blocks), now.from, blocks.Range(now.have, now.have + now.blocks)));
  }
  return absl::OkStatus();
}

absl::Status TransportCommunicator::AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                                              absl::Span<const int64_t> bytes, Instant deadline) {
  RETURN_IF_ERROR(
      CheckAllGather(size_, rank_, static_cast<int64_t>(input.size()), static_cast<int64_t>(output.size()), bytes));
  const std::vector<int64_t> begins = BeginsOf(bytes);
  ASSIGN_OR_RETURN(const Call call, Begin(kAllGather, deadline));
  if (size_ > 1 && begins[size_] <= options_.short_bytes) return DirectAllGather(call, input, output, bytes);
  Copy(input, output.data() + begins[rank_]);
  return RingAllGather(call, output, begins);
}

absl::Status TransportCommunicator::DirectAllGather(const Call& call, absl::Span<const std::byte> input,
                                                    absl::Span<std::byte> output, absl::Span<const int64_t> bytes) {
  Blocks blocks{std::vector<int64_t>(size_ + 1, 0), absl::MakeSpan(scratch_)};
  for (int i = 0; i < size_; ++i) blocks.begins[i + 1] = blocks.begins[i] + bytes[RankOfPlace(size_, i, rank_)];
  Copy(input, blocks.memory.data());
  RETURN_IF_ERROR(PassBlocks(call, blocks));
  std::byte* to = output.data();
  for (Rank rank = 0; rank < size_; ++rank) {
    const int place = PlaceFromRoot(size_, rank, rank_);
    Copy(blocks.Range(place, place + 1), to);
    to += bytes[rank];
  }
  return absl::OkStatus();
}

absl::Status TransportCommunicator::RingAllGather(const Call& call, absl::Span<std::byte> output,
                                                  absl::Span<const int64_t> begins) {
  auto block = [&](int i) { return output.subspan(begins[i], begins[i + 1] - begins[i]); };
  for (int step = 0; step < RingSteps(size_); ++step) {
    const RingStep now = RingAllGatherStep(size_, rank_, step);
    RETURN_IF_ERROR(SendRecv(call, RingNext(size_, rank_), block(now.out), RingPrevious(size_, rank_), block(now.in)));
  }
  return absl::OkStatus();
}

absl::Status TransportCommunicator::Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) {
  RETURN_IF_ERROR(CheckBroadcast(size_, root));
  ASSIGN_OR_RETURN(const Call call, Begin(kBroadcast, deadline));
  if (size_ == 1) return absl::OkStatus();
  if (static_cast<int64_t>(data.size()) <= options_.short_bytes) return TreeBroadcast(call, data, root);
  return ChainBroadcast(call, data, root);
}

absl::Status TransportCommunicator::TreeBroadcast(const Call& call, absl::Span<std::byte> data, Rank root) {
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
absl::Status TransportCommunicator::ChainBroadcast(const Call& call, absl::Span<std::byte> data, Rank root) {
  const int place = PlaceFromRoot(size_, rank_, root);
  const Segment all{0, static_cast<int64_t>(data.size())};
  const int64_t chunks = ChunkCount(all.size(), chunk_bytes());
  auto chunk = [&](int64_t i, bool wanted) {
    const Segment s = wanted && i >= 0 ? ChunkOf(all, chunk_bytes(), i) : Segment{};
    return data.subspan(s.begin, s.size());
  };
  for (int64_t i = 0; i <= chunks; ++i) {
    RETURN_IF_ERROR(SendRecv(call, RingNext(size_, rank_), chunk(i - 1, place < size_ - 1), RingPrevious(size_, rank_),
                             chunk(i, place > 0)));
  }
  return absl::OkStatus();
}

absl::Status TransportCommunicator::Barrier(Instant deadline) {
  ASSIGN_OR_RETURN(const Call call, Begin(kBarrier, deadline));
  const std::byte here{1};
  std::byte there{0};
  for (int step = 0; step < ExchangeSteps(size_); ++step) {
    const ExchangeStep now = ExchangeStepOf(size_, rank_, step);
    RETURN_IF_ERROR(SendRecv(call, now.to, absl::MakeConstSpan(&here, 1), now.from, absl::MakeSpan(&there, 1)));
  }
  return absl::OkStatus();
}

absl::Status TransportCommunicator::Adasum(void* data, absl::Span<const int64_t> pieces, DType dtype,
                                           Instant deadline) {
  RETURN_IF_ERROR(CheckAdasum(data, pieces, dtype));
  ASSIGN_OR_RETURN(const Call call, Begin(kAdasum, deadline));
  const HalvingTask task{size_, rank_, static_cast<std::byte*>(data), dtype, &scratch_};
  return HalvingAdasum(task, pieces, ExchangeOf(call));
}

absl::Status TransportCommunicator::ReduceScatter(const void* input, void* output, absl::Span<const int64_t> counts,
                                                  DType dtype, ReduceOp op, Instant deadline) {
  RETURN_IF_ERROR(CheckReduceScatter(size_, input, output, counts, dtype, op));
  ASSIGN_OR_RETURN(const Call call, Begin(kReduceScatter, deadline));
  const std::vector<int64_t> begins = BeginsOf(counts);
  const Tensor tensor{static_cast<const std::byte*>(input), static_cast<std::byte*>(output), counts[rank_], dtype, op};
  if (size_ == 1) {
    Copy(tensor.In({0, tensor.count}), tensor.output);
  } else {
    RETURN_IF_ERROR(RingReduceScatter(call, tensor, begins));
  }
  if (op == ReduceOp::kAverage) DivideBy(dtype, output, tensor.count, size_);
  return absl::OkStatus();
}

// As the first half of the ring allreduce, each share starting behind its owner, so that it ends there. The partial
// sums stand in memory of our own, one share at a time: a chunk of it has been sent before the next one takes its
// place.
absl::Status TransportCommunicator::RingReduceScatter(const Call& call, const Tensor& tensor,
                                                      absl::Span<const int64_t> begins) {
  const int64_t width = SizeOf(tensor.dtype);
  const auto share = [&](int index) { return Segment{begins[index], begins[index + 1]}; };
  int64_t largest = 0;
  for (int i = 0; i < size_; ++i) largest = std::max(largest, share(i).size());
  const int64_t chunk = std::max<int64_t>(1, chunk_bytes() / width);
  // First the partial sums of one share, then a chunk that comes.
  const size_t wanted = static_cast<size_t>((largest + chunk) * width);
  if (scratch_.size() < wanted) scratch_.resize(wanted);
  std::byte* const partial = scratch_.data();
  std::byte* const came = partial + largest * width;
  for (int step = 0; step < RingSteps(size_); ++step) {
    const RingStep now = RingReduceScatterStep(size_, RingPrevious(size_, rank_), step);
    const bool last = step + 1 == RingSteps(size_);
    const int64_t chunks = ChunkCount(std::max(share(now.out).size(), share(now.in).size()), chunk);
    for (int64_t i = 0; i < chunks; ++i) {
      const Segment out = ChunkOf({0, share(now.out).size()}, chunk, i);
      const Segment in = ChunkOf({0, share(now.in).size()}, chunk, i);
      const std::byte* const from =
          step == 0 ? tensor.input + (share(now.out).begin + out.begin) * width : partial + out.begin * width;
      RETURN_IF_ERROR(SendRecv(call, RingNext(size_, rank_), {from, tensor.Bytes(out)}, RingPrevious(size_, rank_),
                               {came, tensor.Bytes(in)}));
      Reduce(tensor.dtype, tensor.op, came, tensor.input + (share(now.in).begin + in.begin) * width,
             (last ? tensor.output : partial) + in.begin * width, in.size());
    }
  }
  return absl::OkStatus();
}

absl::Status TransportCommunicator::AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to,
                                             absl::Span<std::byte> output, absl::Span<const int64_t> from,
                                             Instant deadline) {
  RETURN_IF_ERROR(
      CheckAllToAll(size_, rank_, static_cast<int64_t>(input.size()), to, static_cast<int64_t>(output.size()), from));
  ASSIGN_OR_RETURN(const Call call, Begin(kAllToAll, deadline));
  const std::vector<int64_t> out = BeginsOf(to), in = BeginsOf(from);
  Copy(input.subspan(out[rank_], to[rank_]), output.data() + in[rank_]);
  for (int step = 1; step < size_; ++step) {
    const Rank next = (rank_ + step) % size_, previous = (rank_ - step + size_) % size_;
    RETURN_IF_ERROR(SendRecv(call, next, input.subspan(out[next], to[next]), previous,
                             output.subspan(in[previous], from[previous])));
  }
  return absl::OkStatus();
}

absl::Status TransportCommunicator::Send(absl::Span<const std::byte> data, Rank to, Instant deadline) {
  RETURN_IF_ERROR(CheckPeer("send", size_, rank_, to));
  ASSIGN_OR_RETURN(const Call call, BeginBetween(sent_[to], deadline));
  return SendRecv(call, to, data, rank_, {});
}

absl::Status TransportCommunicator::Receive(absl::Span<std::byte> data, Rank from, Instant deadline) {
  RETURN_IF_ERROR(CheckPeer("receive", size_, rank_, from));
  ASSIGN_OR_RETURN(const Call call, BeginBetween(received_[from], deadline));
  return SendRecv(call, rank_, {}, from, data);
}

}  // namespace farandole
