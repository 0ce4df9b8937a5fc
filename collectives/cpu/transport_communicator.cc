#include "collectives/cpu/transport_communicator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/cpu/algorithms/adasum.h"
#include "collectives/cpu/algorithms/allreduce.h"
#include "collectives/cpu/algorithms/broadcast.h"
#include "collectives/cpu/algorithms/gather.h"
#include "collectives/cpu/algorithms/reduce_scatter.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Up to so many ranks a reduce-scatter has links from each to each.
constexpr int kPairwiseRanks = 16;
// An allreduce is called long where the ring, whose steps are many and whose neighbours are two, is no slower than
// halving and doubling: from this many bytes for each rank on.
constexpr int64_t kRingBytesPerRank = int64_t{64} << 10;

absl::Status Refused(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", why));
}

absl::Status CheckReduction(absl::string_view what, const void* input, const void* output, int64_t count, DType dtype,
                            ReduceOp op) {
  if (count < 0 || count > std::numeric_limits<int64_t>::max() / SizeOf(dtype)) {
    return Refused(what, absl::StrCat(count, " elements"));
  }
  if (count > 0 && (input == nullptr || output == nullptr)) {
    return Refused(what, absl::StrCat(count, " elements without a buffer"));
  }
  if (!Combines(dtype, op)) return Refused(what, absl::StrCat(Name(dtype), " has no ", Name(op)));
  return absl::OkStatus();
}

// Where each of a list of blocks begins, and the end; nullopt if a length is negative or the sum has no int64_t.
absl::optional<std::vector<int64_t>> BeginsOf(absl::Span<const int64_t> lengths) {
  std::vector<int64_t> begins = {0};
  for (const int64_t length : lengths) {
    if (length < 0 || length > std::numeric_limits<int64_t>::max() - begins.back()) return absl::nullopt;
    begins.push_back(begins.back() + length);
  }
  return begins;
}

absl::StatusOr<std::vector<int64_t>> CheckBlocks(absl::string_view what, int size, absl::Span<const int64_t> lengths) {
  absl::optional<std::vector<int64_t>> begins = BeginsOf(lengths);
  if (static_cast<int>(lengths.size()) != size || !begins.has_value()) {
    return Refused(what, absl::StrCat("wrong list of sizes in a group of ", size));
  }
  return *std::move(begins);
}

}  // namespace

TransportCommunicator::TransportCommunicator(std::unique_ptr<Transport> transport, Options options)
    : transport_(std::move(transport)),
      options_(options),
      rank_(transport_->rank()),
      size_(transport_->size()),
      sent_(size_),
      received_(size_) {}

absl::StatusOr<CollectiveCall> TransportCommunicator::Begin(Kind kind, Instant deadline) {
  const uint64_t operation = collectives_++ * kKinds + kind;
  RETURN_IF_ERROR(transport_->Flush(deadline));
  return CollectiveCall{*transport_, operation, deadline, rank_, size_, chunk_bytes(), scratch_};
}

absl::Status TransportCommunicator::AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                                              Instant deadline) {
  RETURN_IF_ERROR(CheckReduction("allreduce", input, output, count, dtype, op));
  ASSIGN_OR_RETURN(const CollectiveCall call, Begin(op == ReduceOp::kAdasum ? kAdasum : kAllReduce, deadline));
  const Tensor tensor{static_cast<const std::byte*>(input), static_cast<std::byte*>(output), count, dtype, op};
  if (size_ > 1 && count > 0 && op != ReduceOp::kAdasum) return RunAllReduce(call, tensor);
  CopyBytes(tensor.In(tensor.all()), tensor.output);
  if (size_ == 1 || count == 0) return absl::OkStatus();
  return AdasumInPlace(call, tensor.output, absl::MakeConstSpan(&count, 1), dtype);
}

absl::Status TransportCommunicator::RunAllReduce(const CollectiveCall& call, const Tensor& tensor) const {
  switch (tuning_.allreduce) {
    case Algorithm::kDirect:
      return DirectAllReduce(call, tensor);
    case Algorithm::kRing:
      return RingAllReduce(call, tensor);
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingAllReduce(call, tensor);
    case Algorithm::kAuto:
    case Algorithm::kHierarchical:
      break;
  }
  if (tensor.bytes() <= options_.short_bytes / size_) return DirectAllReduce(call, tensor);
  const bool is_short = size_ > 2 && tensor.bytes() / size_ < kRingBytesPerRank;
  return is_short ? HalvingDoublingAllReduce(call, tensor) : RingAllReduce(call, tensor);
}

absl::Status TransportCommunicator::Adasum(void* data, absl::Span<const int64_t> pieces, DType dtype,
                                           Instant deadline) {
  const absl::optional<std::vector<int64_t>> begins = BeginsOf(pieces);
  if (!begins.has_value()) return Refused("adasum", "wrong list of pieces");
  RETURN_IF_ERROR(CheckReduction("adasum", data, data, begins->back(), dtype, ReduceOp::kAdasum));
  ASSIGN_OR_RETURN(const CollectiveCall call, Begin(kAdasum, deadline));
  if (size_ == 1 || begins->back() == 0) return absl::OkStatus();
  return AdasumInPlace(call, static_cast<std::byte*>(data), pieces, dtype);
}

absl::Status TransportCommunicator::ReduceScatter(const void* input, void* output, absl::Span<const int64_t> counts,
                                                  DType dtype, ReduceOp op, Instant deadline) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> begins, CheckBlocks("reducescatter", size_, counts));
  const bool wanted = counts[rank_] > 0;
  RETURN_IF_ERROR(CheckReduction("reducescatter", input, wanted ? output : input, begins.back(), dtype, op));
  if (op == ReduceOp::kAdasum) return Refused("reducescatter", "there is none by Adasum");
  ASSIGN_OR_RETURN(const CollectiveCall call, Begin(kReduceScatter, deadline));
  const Tensor tensor{static_cast<const std::byte*>(input), static_cast<std::byte*>(output), begins.back(), dtype, op};
  if (size_ == 1) {
    CopyBytes(tensor.In(tensor.all()), tensor.output);
    return absl::OkStatus();
  }
  const bool ring =
      tuning_.allreduce == Algorithm::kRing || (size_ > kPairwiseRanks && tuning_.allreduce != Algorithm::kDirect);
  return ring ? RingReduceScatter(call, tensor, begins) : PairwiseReduceScatter(call, tensor, begins);
}

absl::Status TransportCommunicator::AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                                              absl::Span<const int64_t> bytes, Instant deadline) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> begins, CheckBlocks("allgather", size_, bytes));
  if (static_cast<int64_t>(input.size()) != bytes[rank_] || static_cast<int64_t>(output.size()) != begins[size_]) {
    return Refused("allgather", absl::StrCat("rank ", rank_, " gives ", input.size(), " and expects ", output.size(),
                                             " bytes, the list of sizes says ", bytes[rank_], " and ", begins[size_]));
  }
  ASSIGN_OR_RETURN(const CollectiveCall call, Begin(kAllGather, deadline));
  return RunAllGather(call, input, output, begins);
}

absl::Status TransportCommunicator::RunAllGather(const CollectiveCall& call, absl::Span<const std::byte> input,
                                                 absl::Span<std::byte> output, absl::Span<const int64_t> begins) const {
  const bool chosen = tuning_.allgather == Algorithm::kDirect || tuning_.allgather == Algorithm::kRing;
  if (size_ > 1 && !chosen && begins[size_] <= options_.short_bytes) {
    return ShortAllGather(call, input, output, begins);
  }
  CopyBytes(input, output.data() + begins[rank_]);
  if (size_ == 1) return absl::OkStatus();
  return tuning_.allgather == Algorithm::kDirect ? DirectAllGather(call, output, begins)
                                                 : RingAllGather(call, output, begins);
}

absl::Status TransportCommunicator::AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to,
                                             absl::Span<std::byte> output, absl::Span<const int64_t> from,
                                             Instant deadline) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> input_begins, CheckBlocks("alltoall", size_, to));
  ASSIGN_OR_RETURN(const std::vector<int64_t> output_begins, CheckBlocks("alltoall", size_, from));
  if (static_cast<int64_t>(input.size()) != input_begins[size_] ||
      static_cast<int64_t>(output.size()) != output_begins[size_] || to[rank_] != from[rank_]) {
    return Refused("alltoall", absl::StrCat("rank ", rank_, " gives ", input.size(), " and expects ", output.size(),
                                            " bytes, the lists of sizes say ", input_begins[size_], " and ",
                                            output_begins[size_], ", for itself ", to[rank_], " and ", from[rank_]));
  }
  ASSIGN_OR_RETURN(const CollectiveCall call, Begin(kAllToAll, deadline));
  const int64_t longest =
      std::max(*std::max_element(to.begin(), to.end()), *std::max_element(from.begin(), from.end()));
  return ExchangeBlocks(call, input, input_begins, output, output_begins, longest <= options_.short_bytes);
}

absl::Status TransportCommunicator::Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) {
  if (root < 0 || root >= size_)
    return Refused("broadcast", absl::StrCat("from rank ", root, " in a group of ", size_));
  ASSIGN_OR_RETURN(const CollectiveCall call, Begin(kBroadcast, deadline));
  if (size_ == 1) return absl::OkStatus();
  return RunBroadcast(call, data, root);
}

absl::Status TransportCommunicator::RunBroadcast(const CollectiveCall& call, absl::Span<std::byte> data,
                                                 Rank root) const {
  const int64_t bytes = static_cast<int64_t>(data.size());
  if (bytes <= options_.short_bytes) return TreeBroadcast(call, data, root);
  if (size_ == 2) return ChainBroadcast(call, data, root, bytes);
  // The chain has to be filled once: it pays when there are many more chunks than ranks.
  if (bytes < 2 * size_ * options_.short_bytes) return ScatterBroadcast(call, data, root);
  return ChainBroadcast(
      call, data, root,
      std::clamp(bytes / (4 * size_), std::min(options_.short_bytes, call.chunk_bytes), call.chunk_bytes));
}

absl::Status TransportCommunicator::Barrier(Instant deadline) {
  ASSIGN_OR_RETURN(const CollectiveCall call, Begin(kBarrier, deadline));
  return size_ == 1 ? absl::OkStatus() : Rendezvous(call);
}

absl::Status TransportCommunicator::Send(absl::Span<const std::byte> data, Rank to, Instant deadline) {
  if (to < 0 || to >= size_ || to == rank_) {
    return Refused("send", absl::StrCat("from rank ", rank_, " to rank ", to, " in a group of ", size_));
  }
  const uint64_t operation = sent_[to]++ * kKinds + kPointToPoint;
  RETURN_IF_ERROR(transport_->Post(operation, to, data));
  return transport_->Flush(deadline);
}

absl::Status TransportCommunicator::Receive(absl::Span<std::byte> data, Rank from, Instant deadline) {
  if (from < 0 || from >= size_ || from == rank_) {
    return Refused("receive", absl::StrCat("at rank ", rank_, " from rank ", from, " in a group of ", size_));
  }
  return transport_->Receive(received_[from]++ * kKinds + kPointToPoint, from, data, deadline);
}

}  // namespace farandole
