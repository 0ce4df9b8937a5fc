#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/request.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"

namespace farandole {

// Names an operation that was enqueued. Never zero, never used again in this process.
using Handle = uint64_t;

// The operations that the program has enqueued and not yet released, across generations: a handle that a shutdown has
// aborted can still be asked why.
//
// Errors of all calls with a handle: NotFound when it is unknown or was released.
//
// Thread-safe.
class HandleTable {
 public:
  // A new, unfinished operation. Who waits for it assists `engine`, unless that is null.
  Handle Add(const std::shared_ptr<Engine>& engine) ABSL_LOCKS_EXCLUDED(mutex_);

  // It has ended with `status` and, when OK, with `result`. Wakes those who wait for it. Exactly once per operation.
  void Finish(Handle handle, absl::Status status, Result result) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether it has ended, well or not.
  absl::StatusOr<bool> Poll(Handle handle) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until it has ended and returns how. DeadlineExceeded when it has not by `deadline`; it goes on. A wait that
  // has begun is not disturbed when another thread releases the handle.
  absl::Status Wait(Handle handle, Instant deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // What it has given, valid until Release. FailedPrecondition while it is unfinished; its own error if it failed.
  absl::StatusOr<const Result*> ResultOf(Handle handle) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets it; an unfinished one goes on to its end unseen.
  absl::Status Release(Handle handle) ABSL_LOCKS_EXCLUDED(mutex_);

  // How many are kept: not released, or released and unfinished.
  int64_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Operation {
    std::weak_ptr<Engine> engine;
    std::atomic<bool> finished = false;  // written under the lock
    bool released = false;               // kept only for those who wait
    absl::Status status;
    Result result;
    CondVar ended;
  };
  // Shared with those who wait, so that a release does not pull it away under them.
  using OperationPtr = std::shared_ptr<Operation>;

  absl::StatusOr<OperationPtr> Find(Handle handle) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;  // guards the operations' fields as well
  Handle next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<Handle, OperationPtr> operations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
