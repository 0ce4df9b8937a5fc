#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/core/communicator.h"
#include "collectives/core/group.h"
#include "collectives/cpu/algorithms/collective_call.h"
#include "collectives/cpu/algorithms/tensor.h"
#include "collectives/transport/transport.h"

namespace farandole {

// Collectives on ordinary memory over any transport: checks arguments, numbers collectives, and chooses among the ways
// in algorithms/.
//
//   allreduce       direct, ring, halving and doubling; Adasum by vector halving
//   reduce-scatter  pairwise; in large groups, or by choice, the ring
//   allgather       short: a Bruck exchange; else the ring, or by choice direct
//   alltoall        short: all at once; else in pairs
//   broadcast       short: a binomial tree; else a chain, or in between, in large groups, scatter and ring
//   barrier         an exchange of one byte
//
// What Algorithm does not apply to a collective counts as kAuto; so does kHierarchical, which is a communicator of its
// own. Memory beside the caller's: what algorithms/ says of each.
class TransportCommunicator : public Communicator {
 public:
  struct Options {
    // What is sent at a time, so that reducing one chunk overlaps the transfer of the next; it should stay in a core's
    // cache.
    int64_t chunk_bytes = int64_t{256} << 10;
    // Collectives that bring no more bytes than this to each rank take the short way.
    int64_t short_bytes = int64_t{16} << 10;
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
  absl::Status Adasum(void* data, absl::Span<const int64_t> pieces, DType dtype, Instant deadline) override;
  absl::Status ReduceScatter(const void* input, void* output, absl::Span<const int64_t> counts, DType dtype,
                             ReduceOp op, Instant deadline) override;
  absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                         absl::Span<const int64_t> bytes, Instant deadline) override;
  absl::Status AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to, absl::Span<std::byte> output,
                        absl::Span<const int64_t> from, Instant deadline) override;
  absl::Status Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) override;
  absl::Status Barrier(Instant deadline) override;
  absl::Status Send(absl::Span<const std::byte> data, Rank to, Instant deadline) override;
  absl::Status Receive(absl::Span<std::byte> data, Rank from, Instant deadline) override;
  void Abort(absl::string_view reason) override { transport_->Abort(reason); }

 private:
  // What kind of operation a number stands for, so that ranks that call different ones notice.
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

  // The next collective. An error if the group is finished, also when the collective has nothing to send.
  absl::StatusOr<CollectiveCall> Begin(Kind kind, Instant deadline);
  absl::Status RunAllReduce(const CollectiveCall& call, const Tensor& tensor) const;
  absl::Status RunBroadcast(const CollectiveCall& call, absl::Span<std::byte> data, Rank root) const;
  absl::Status RunAllGather(const CollectiveCall& call, absl::Span<const std::byte> input, absl::Span<std::byte> output,
                            absl::Span<const int64_t> begins) const;
  int64_t chunk_bytes() const { return tuning_.chunk_bytes > 0 ? tuning_.chunk_bytes : options_.chunk_bytes; }

  const std::unique_ptr<Transport> transport_;
  const Options options_;
  const Rank rank_;
  const int size_;
  CollectiveTuning tuning_;
  uint64_t collectives_ = 0;  // begun so far
  // Messages between this rank and each other one: of their own numbers, since the others know nothing of them.
  std::vector<uint64_t> sent_;
  std::vector<uint64_t> received_;
  std::vector<std::byte> scratch_;  // grows to what the collectives need
};

}  // namespace farandole
