#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/core/communicator.h"
#include "collectives/core/group.h"
#include "collectives/cpu/halving.h"
#include "collectives/transport/transport.h"

namespace farandole {

// Collectives on ordinary memory over any transport. n ranks:
//
//   allreduce      direct: everybody's tensor to everybody, ceil(log2(n)) steps, reduced in rank order at each rank;
//                  halving and doubling; the ring, in chunks
//   adasum         halving and doubling
//   reducescatter  the ring, in chunks
//   allgather      direct, or the ring
//   alltoall       pairs, n - 1 steps
//   broadcast      short: a binomial tree; else a chain in chunks
//   barrier        ceil(log2(n)) steps
//
// Every element of an allreduce is reduced in one place, or everywhere in one order: so all ranks get the same bytes.
// Memory beside the tensors: a chunk for the ring, one share for reducescatter, the tensor for halving and adasum.
class TransportCommunicator : public Communicator {
 public:
  struct Options {
    // What is sent at a time, so that reducing one chunk overlaps the transfer of the next; it should stay in a core's
    // cache.
    int64_t chunk_bytes = int64_t{128} << 10;
    // Collectives that bring no more bytes than this to each rank take the short way.
    int64_t short_bytes = int64_t{16} << 10;
    // Allreduces of no more bytes go by halving and doubling, in groups of more than two.
    int64_t halving_bytes = int64_t{256} << 10;
  };

  explicit TransportCommunicator(std::unique_ptr<Transport> transport)
      : TransportCommunicator(std::move(transport), Options()) {}
  TransportCommunicator(std::unique_ptr<Transport> transport, Options options);

  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  MemoryKind memory() const override { return MemoryKind::kHost; }
  bool retains_results() const override { return false; }
  ShortAllReduce* short_allreduce() override { return nullptr; }
  void SetStream(void* stream) override {}
  absl::Status Await(Instant deadline) override { return absl::OkStatus(); }
  void Tune(const CollectiveTuning& tuning) override { tuning_ = tuning; }

  absl::Status AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                         Instant deadline) override;
  absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                         absl::Span<const int64_t> bytes, Instant deadline) override;
  absl::Status Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) override;
  absl::Status Adasum(void* data, absl::Span<const int64_t> pieces, DType dtype, Instant deadline) override;
  absl::Status ReduceScatter(const void* input, void* output, absl::Span<const int64_t> counts, DType dtype,
                             ReduceOp op, Instant deadline) override;
  absl::Status AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to, absl::Span<std::byte> output,
                        absl::Span<const int64_t> from, Instant deadline) override;
  absl::Status Barrier(Instant deadline) override;
  absl::Status Send(absl::Span<const std::byte> data, Rank to, Instant deadline) override;
  absl::Status Receive(absl::Span<std::byte> data, Rank from, Instant deadline) override;
  void Abort(absl::string_view reason) override { transport_->Abort(reason); }

 private:
  // One collective that is running.
  struct Call {
    uint64_t operation;
    Instant deadline;
  };
  struct Tensor;
  struct Blocks;

  // Begins a collective of a kind: its number, which carries the kind, so that ranks that call different ones notice.
  enum Kind : uint64_t {
    kAllReduce,
    kAllGather,
    kBroadcast,
    kBarrier,
    kAdasum,
    kReduceScatter,
    kAllToAll,
    kPointToPoint,
    kKinds
  };
  absl::StatusOr<Call> Begin(Kind kind, Instant deadline);
  // Of what is between two ranks only: `before` counts what has gone that way.
  absl::StatusOr<Call> BeginBetween(uint64_t& before, Instant deadline);
  absl::Status CheckAlive(const Call& call) { return SendRecv(call, rank_, {}, rank_, {}); }

  absl::Status SendRecv(const Call& call, Rank to, absl::Span<const std::byte> out, Rank from,
                        absl::Span<std::byte> in) {
    return transport_->SendRecv(call.operation, to, out, from, in, call.deadline);
  }
  Exchange ExchangeOf(const Call& call);
  int64_t chunk_bytes() const { return tuning_.chunk_bytes > 0 ? tuning_.chunk_bytes : options_.chunk_bytes; }

  Algorithm ForAllReduce(int64_t bytes) const;
  absl::Status DirectAllReduce(const Call& call, const Tensor& tensor);
  absl::Status HalvingDoublingAllReduce(const Call& call, const Tensor& tensor);
  absl::Status RingAllReduce(const Call& call, const Tensor& tensor);
  absl::Status RingReduceStep(const Call& call, const Tensor& tensor, int step);
  absl::Status RingGatherStep(const Call& call, const Tensor& tensor, int step);
  absl::Status RingReduceScatter(const Call& call, const Tensor& tensor, absl::Span<const int64_t> begins);
  absl::Status PassBlocks(const Call& call, Blocks& blocks);
  absl::Status DirectAllGather(const Call& call, absl::Span<const std::byte> input, absl::Span<std::byte> output,
                               absl::Span<const int64_t> bytes);
  absl::Status RingAllGather(const Call& call, absl::Span<std::byte> output, absl::Span<const int64_t> begins);
  absl::Status TreeBroadcast(const Call& call, absl::Span<std::byte> data, Rank root);
  absl::Status ChainBroadcast(const Call& call, absl::Span<std::byte> data, Rank root);

  const std::unique_ptr<Transport> transport_;
  const Options options_;
  const Rank rank_;
  const int size_;
  CollectiveTuning tuning_;
  uint64_t collectives_ = 0;               // begun so far
  std::vector<uint64_t> sent_, received_;  // by rank: what Send and Receive have begun
  std::vector<std::byte> scratch_;         // what has come and is to be combined, or the blocks of a direct collective
};

}  // namespace farandole
