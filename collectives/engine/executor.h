#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/core/communicator.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/request.h"
#include "collectives/engine/wire.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"

namespace farandole {

// One operation of the sequence with this rank's memory: `requests[i]` belongs to `response.names[i]`.
struct Operation {
  Response response;
  std::vector<Pending> requests;
  absl::Status error;  // not OK: it does not run, its requests fail with this
};

// Moves data: one thread that runs operations in the order of the sequence and completes their requests.
//
// Inputs are copied into a buffer of the executor, the collective runs there, and the user's output is written when it
// has finished: so a user's memory changes only by delivering a finished result (R1 of replay).
//
// Thread-safe, but for the destructor.
class Executor {
 public:
  // Both are called on the executor's thread.
  struct Events {
    // Once, when a collective fails: nothing runs after that, everything given to Run fails with the same status.
    std::function<void(absl::Status)> broken;
    // HasRoom() has said no, and would say yes.
    std::function<void()> room;
  };

  // `pending` and `communicator` outlive the executor.
  Executor(Communicator* communicator, PendingTable* pending, absl::Duration data_timeout, Events events);
  // Waits for Finish's end.
  ~Executor();

  void Run(Operation operation) ABSL_LOCKS_EXCLUDED(mutex_);

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
  absl::Status Collective(Operation& operation, std::vector<Result>& results);
  absl::Status AllReduce(Operation& operation);
  absl::Status AllGather(Operation& operation, Result& result);
  absl::Status Broadcast(Operation& operation);
  void TellOfRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoomLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return queue_.size() + (runs_ ? 1 : 0) <= 1; }
  absl::StatusOr<std::byte*> Buffer(int64_t bytes);
  Instant Deadline() const;

  Communicator* const communicator_;
  PendingTable* const pending_;
  const absl::Duration data_timeout_;
  const Events events_;

  // The thread's.
  absl::Status broken_;
  std::unique_ptr<std::byte[]> buffer_;  // touched once and kept: page faults are dear
  int64_t buffer_bytes_ = 0;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Operation> queue_ ABSL_GUARDED_BY(mutex_);
  bool runs_ ABSL_GUARDED_BY(mutex_) = false;
  bool room_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status finish_ ABSL_GUARDED_BY(mutex_);  // not OK: Finish was called
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses the others
};

}  // namespace farandole
