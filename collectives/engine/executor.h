#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/core/communicator.h"
#include "collectives/engine/operation.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/runner.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"

namespace farandole {

// Moves data: runs operations in the order of the sequence, one at a time, and completes their requests. There is a
// thread for that; short operations may be run by others too (TryRunShort), so that who waits for one needs no switch
// to another thread.
//
// A user's memory changes only by delivering a finished result (R1 of replay): inputs of several requests are copied
// into a buffer of the executor, the collective runs there, and the outputs are written when it has finished. A single
// allreduce goes from the input to the output without a copy if the communicator sees to that rule itself
// (retains_results()), else from the input to the buffer. Two buffers are used in turn: what the last operation has
// left is there until the next one has finished, which no rank begins before it has finished the last (R3).
//
// Thread-safe, but for the destructor.
class Executor {
 public:
  // Both are called by who runs an operation.
  struct Events {
    // Once, when a collective fails: nothing runs after that, everything given to Run fails with the same status.
    std::function<void(absl::Status)> broken;
    // HasRoom() has said no, and would say yes.
    std::function<void()> room;
  };

  // `pending` and `communicator` outlive the executor.
  Executor(Communicator* communicator, PendingTable* pending, const EngineConfig& config, Events events);
  // Waits for Finish's end.
  ~Executor();

  // Puts an operation at the end. Kick, or TryRunShort, has to follow.
  void Run(Operation operation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Wakes the thread if there is something for it to run.
  void Kick() ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs the next operation here if it is a short one and nobody runs another. The ranks that are late are waited for
  // during `patience`, then the thread finishes it. Whether there was one.
  bool TryRunShort(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether more would be of use: at most one operation runs or waits. Who gives no more than that loses no time, and
  // what becomes ready meanwhile can be fused. After a no, `room` is called.
  bool HasRoom() ABSL_LOCKS_EXCLUDED(mutex_);

  // After everything given to Run: closes `pending` with `status`, fails what is left there, and ends the thread. Only
  // the first call counts.
  void Finish(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether the thread is over, waiting until `deadline`.
  bool AwaitEnd(Instant deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunOne(Operation operation);
  void FinishShort(Operation operation);
  void Complete(Operation operation, absl::Status status, std::vector<Result> results);
  absl::Status Broken(const absl::Status& status);
  bool HasWorkLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return begun_.has_value() || (!queue_.empty() && !runs_);
  }
  void TellOfRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoomLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return queue_.size() + (runs_ ? 1 : 0) <= 1; }

  PendingTable* const pending_;
  const Events events_;

  // Of who runs an operation: runs_ passes them on.
  absl::Status broken_;
  Runner runner_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Operation> queue_ ABSL_GUARDED_BY(mutex_);
  bool runs_ ABSL_GUARDED_BY(mutex_) = false;  // somebody runs an operation, or begun_ waits for the thread
  absl::optional<Operation> begun_ ABSL_GUARDED_BY(mutex_);  // short, for the thread to finish
  bool room_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status finish_ ABSL_GUARDED_BY(mutex_);  // not OK: Finish was called
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses the others
};

}  // namespace farandole
