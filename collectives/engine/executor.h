#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/core/communicator.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/wire.h"
#include "tools/base/mutex.h"

namespace farandole {

// One operation of the sequence with this rank's memory: `requests[i]` belongs to `response.names[i]`.
struct Operation {
  Response response;
  std::vector<Pending> requests;
};

// Moves data: one thread that runs operations in the order of the sequence and completes their requests.
//
// Inputs are copied into a buffer of the executor, the collective runs there, and the user's output is written when it
// has finished: so a user's memory changes only by delivering a finished result (R1 of replay).
//
// Thread-safe, but for the destructor.
class Executor {
 public:
  // `broken` is called once, on the executor's thread, when a collective fails: nothing runs after that, everything
  // given to Run fails with the same status. `pending` and `communicator` outlive the executor.
  Executor(Communicator* communicator, PendingTable* pending, absl::Duration data_timeout,
           std::function<void(absl::Status)> broken);
  // Waits for Finish's end.
  ~Executor();

  void Run(Operation operation) ABSL_LOCKS_EXCLUDED(mutex_);

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
  std::byte* Buffer(int64_t bytes);
  Instant Deadline() const;

  Communicator* const communicator_;
  PendingTable* const pending_;
  const absl::Duration data_timeout_;
  const std::function<void(absl::Status)> on_broken_;

  // The thread's.
  absl::Status broken_;
  std::unique_ptr<std::byte[]> buffer_;  // touched once and kept: page faults are dear
  int64_t buffer_bytes_ = 0;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Operation> queue_ ABSL_GUARDED_BY(mutex_);
  absl::Status finish_ ABSL_GUARDED_BY(mutex_);  // not OK: Finish was called
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses the others
};

}  // namespace farandole
