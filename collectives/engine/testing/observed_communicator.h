#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "collectives/core/communicator.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole {

// A door in front of one rank's collectives that counts them, for tests. Open at first. Thread-safe.
class Gate {
 public:
  void Shut() { Set(false); }
  void Open() { Set(true); }

  // Called by each collective: counts it, waits while the gate is shut.
  void Pass() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++arrived_;
    changed_.NotifyAll();
    changed_.AwaitUntil(&mutex_, Now() + absl::Seconds(60), [this] {
      mutex_.AssertHeld();
      return open_;
    });
  }

  // Whether `count` collectives have come to the gate, in good time.
  bool AwaitArrivals(int count) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + absl::Seconds(20), [&] {
      mutex_.AssertHeld();
      return arrived_ >= count;
    });
  }

  int arrivals() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return arrived_;
  }

 private:
  void Set(bool open) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    open_ = open;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A communicator whose collectives go through `gate`.
class ObservedCommunicator : public Communicator {
 public:
  ObservedCommunicator(std::unique_ptr<Communicator> inner, Gate* gate) : inner_(std::move(inner)), gate_(gate) {}

  Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  absl::Status AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                         Instant deadline) override {
    gate_->Pass();
    return inner_->AllReduce(input, output, count, dtype, op, deadline);
  }
  absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                         absl::Span<const int64_t> bytes, Instant deadline) override {
    gate_->Pass();
    return inner_->AllGather(input, output, bytes, deadline);
  }
  absl::Status Adasum(void* data, absl::Span<const int64_t> pieces, DType dtype, Instant deadline) override {
    gate_->Pass();
    return inner_->Adasum(data, pieces, dtype, deadline);
  }
  absl::Status ReduceScatter(const void* input, void* output, absl::Span<const int64_t> counts, DType dtype,
                             ReduceOp op, Instant deadline) override {
    gate_->Pass();
    return inner_->ReduceScatter(input, output, counts, dtype, op, deadline);
  }
  absl::Status AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to, absl::Span<std::byte> output,
                        absl::Span<const int64_t> from, Instant deadline) override {
    gate_->Pass();
    return inner_->AllToAll(input, to, output, from, deadline);
  }
  absl::Status Send(absl::Span<const std::byte> data, Rank to, Instant deadline) override {
    return inner_->Send(data, to, deadline);
  }
  absl::Status Receive(absl::Span<std::byte> data, Rank from, Instant deadline) override {
    return inner_->Receive(data, from, deadline);
  }
  MemoryKind memory() const override { return inner_->memory(); }
  bool retains_results() const override { return inner_->retains_results(); }
  ShortAllReduce* short_allreduce() override { return nullptr; }  // would pass the gate unseen
  void SetStream(void* stream) override { inner_->SetStream(stream); }
  absl::Status Await(Instant deadline) override { return inner_->Await(deadline); }
  void Tune(const CollectiveTuning& tuning) override { inner_->Tune(tuning); }
  absl::Status Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) override {
    gate_->Pass();
    return inner_->Broadcast(data, root, deadline);
  }
  absl::Status Barrier(Instant deadline) override {
    gate_->Pass();
    return inner_->Barrier(deadline);
  }
  void Abort(absl::string_view reason) override { inner_->Abort(reason); }

 private:
  const std::unique_ptr<Communicator> inner_;
  Gate* const gate_;
};

}  // namespace farandole
