#include "collectives/cpu/flat/flat_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/core/finish_state.h"
#include "collectives/cpu/arguments.h"
#include "collectives/cpu/flat/flat_pipeline.h"
#include "collectives/cpu/flat/flat_short.h"
#include "collectives/cpu/flat/flat_slab.h"
#include "collectives/cpu/flat/flat_wait.h"
#include "collectives/cpu/transport_communicator.h"
#include "collectives/transport/shm/shm_transport.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

enum Kind : uint64_t { kAllReduce = 1, kAdasum, kReduceScatter, kAllGather, kAllToAll, kBroadcast };

// A number that two ranks have in common if they call the same collective; the small fields keep their bits, so that
// calls which differ in one of them never have.
uint64_t Describe(Kind kind, int64_t length, DType dtype = DType::kUint8, ReduceOp op = ReduceOp::kSum, Rank root = 0) {
  const uint64_t small = kind << 8 | static_cast<uint64_t>(dtype) << 4 | static_cast<uint64_t>(op);
  return small ^ (static_cast<uint64_t>(length) << 12) ^ (static_cast<uint64_t>(root) << 48);
}

class FlatCommunicator : public Communicator, public ShortAllReduce {
 public:
  FlatCommunicator(GroupSpec spec, std::unique_ptr<FlatSlab> slab, std::unique_ptr<Communicator> rings)
      : spec_(std::move(spec)),
        slab_(std::move(slab)),
        rings_(std::move(rings)),
        wait_(spec_, *slab_, finish_),
        pipeline_(spec_, *slab_, wait_, finish_),
        short_(spec_, *slab_, wait_) {}

  Rank rank() const override { return spec_.rank; }
  int size() const override { return spec_.size(); }
  MemoryKind memory() const override { return MemoryKind::kHost; }
  bool retains_results() const override { return true; }
  ShortAllReduce* short_allreduce() override { return this; }
  void SetStream(void* stream) override {}
  absl::Status Await(Instant deadline) override { return absl::OkStatus(); }
  void Tune(const CollectiveTuning& tuning) override { pipeline_.set_chunk_bytes(tuning.chunk_bytes); }

  absl::Status AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                         Instant deadline) override {
    RETURN_IF_ERROR(CheckAllReduce(input, output, count, dtype, op));
    if (op == ReduceOp::kAdasum) {
      if (input != output && count > 0) std::memcpy(output, input, count * SizeOf(dtype));
      return Adasum(output, {count}, dtype, deadline);
    }
    RETURN_IF_ERROR(Begin(Describe(kAllReduce, count, dtype, op)));
    if (count * SizeOf(dtype) <= max_bytes()) {
      short_.Post({input, output, count, dtype, op}, what_);
      return Done(short_.Finish(deadline));
    }
    return Done(pipeline_.AllReduce({input, output, count, dtype, op}, deadline));
  }

  absl::Status ReduceScatter(const void* input, void* output, absl::Span<const int64_t> counts, DType dtype,
                             ReduceOp op, Instant deadline) override {
    RETURN_IF_ERROR(CheckReduceScatter(size(), input, output, counts, dtype, op));
    const std::vector<int64_t> begins = BeginsOf(counts);
    RETURN_IF_ERROR(Begin(Describe(kReduceScatter, begins.back(), dtype, op)));
    return Done(pipeline_.ReduceScatter({input, output, begins.back(), dtype, op}, begins, deadline));
  }

  absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                         absl::Span<const int64_t> bytes, Instant deadline) override {
    RETURN_IF_ERROR(
        CheckAllGather(size(), rank(), static_cast<int64_t>(input.size()), static_cast<int64_t>(output.size()), bytes));
    RETURN_IF_ERROR(Begin(Describe(kAllGather, static_cast<int64_t>(output.size()))));
    return Done(pipeline_.AllGather(input, output, BeginsOf(bytes), deadline));
  }

  absl::Status AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to, absl::Span<std::byte> output,
                        absl::Span<const int64_t> from, Instant deadline) override {
    RETURN_IF_ERROR(CheckAllToAll(size(), rank(), static_cast<int64_t>(input.size()), to,
                                  static_cast<int64_t>(output.size()), from));
    // Nobody knows all sizes: first the largest block of all.
    int64_t largest = std::max(*std::max_element(to.begin(), to.end()), *std::max_element(from.begin(), from.end()));
    RETURN_IF_ERROR(AllReduce(&largest, &largest, 1, DType::kInt64, ReduceOp::kMax, deadline));
    RETURN_IF_ERROR(Begin(Describe(kAllToAll, largest)));
    return Done(pipeline_.AllToAll(input, BeginsOf(to), output, BeginsOf(from), largest, deadline));
  }

  absl::Status Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) override {
    RETURN_IF_ERROR(CheckBroadcast(size(), root));
    RETURN_IF_ERROR(
        Begin(Describe(kBroadcast, static_cast<int64_t>(data.size()), DType::kUint8, ReduceOp::kSum, root)));
    return Done(pipeline_.Broadcast(data, root, deadline));
  }

  absl::Status Barrier(Instant deadline) override {
    return AllReduce(nullptr, nullptr, 0, DType::kUint8, ReduceOp::kSum, deadline);
  }

  absl::Status Adasum(void* data, absl::Span<const int64_t> pieces, DType dtype, Instant deadline) override {
    RETURN_IF_ERROR(CheckAdasum(data, pieces, dtype));
    RETURN_IF_ERROR(Begin(Describe(kAdasum, BeginsOf(pieces).back(), dtype)));
    wait_.Notify();  // the rings do not show it to who waits for something else
    return Done(rings_->Adasum(data, pieces, dtype, deadline));
  }
  absl::Status Send(absl::Span<const std::byte> data, Rank to, Instant deadline) override {
    RETURN_IF_ERROR(finish_.CheckStart());
    return Between(rings_->Send(data, to, deadline));
  }
  absl::Status Receive(absl::Span<std::byte> data, Rank from, Instant deadline) override {
    RETURN_IF_ERROR(finish_.CheckStart());
    return Between(rings_->Receive(data, from, deadline));
  }

  void Abort(absl::string_view reason) override {
    finish_.Abort(reason);
    slab_->members().Ring(spec_.rank);
    rings_->Abort(reason);
  }

  // ShortAllReduce.
  int64_t max_bytes() const override { return FlatSlab::kShortBytes / size(); }
  absl::StatusOr<bool> Begin(void* data, int64_t count, DType dtype, ReduceOp op, Instant patience) override {
    RETURN_IF_ERROR(CheckAllReduce(data, data, count, dtype, op));
    RETURN_IF_ERROR(Begin(Describe(kAllReduce, count, dtype, op)));
    short_.Post({data, data, count, dtype, op}, what_);
    absl::StatusOr<bool> done = short_.TryFinish(patience);
    if (!done.ok()) return Done(done.status());
    return done;
  }
  absl::Status Finish(Instant deadline) override { return Done(short_.Finish(deadline)); }

 private:
  absl::Status Begin(uint64_t what) {
    RETURN_IF_ERROR(finish_.CheckStart());
    what_ = what;
    wait_.Begin(++number_, what);
    return absl::OkStatus();
  }
  absl::Status Done(const absl::Status& status) { return status.ok() ? status : finish_.Finish(status); }
  // Arguments that only the rings check do no harm.
  absl::Status Between(const absl::Status& status) { return absl::IsInvalidArgument(status) ? status : Done(status); }

  const GroupSpec spec_;
  const std::unique_ptr<FlatSlab> slab_;
  const std::unique_ptr<Communicator> rings_;
  FinishState finish_;
  FlatWait wait_;
  FlatPipeline pipeline_;
  FlatShort short_;
  uint64_t number_ = 0;  // of the present collective, from 1
  uint64_t what_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateFlatCommunicator(const GroupSpec& spec, SlabSource& source,
                                                                     Instant deadline) {
  if (spec.size() > kFlatSizeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a flat communicator of ", spec.size(), " ranks: at most ", kFlatSizeMax));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FlatSlab> slab, FlatSlab::Open(spec, source, deadline));
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> rings, CreateShmTransport(spec, source, deadline));
  return std::make_unique<FlatCommunicator>(spec, std::move(slab),
                                            std::make_unique<TransportCommunicator>(std::move(rings)));
}

}  // namespace farandole
