#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "collectives/transport/slab_source.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"
#include "worker/runtime/agent_client.h"
#include "worker/runtime/assignment.h"
#include "worker/runtime/engine_count.h"
#include "worker/runtime/environment.h"
#include "worker/runtime/handle_table.h"
#include "worker/runtime/membership.h"
#include "worker/runtime/session_state.h"

namespace farandole {

// A process's membership of its job: joins, holds the engine of the present generation, leaves, and may join again.
// Outside of a job (FARANDOLE_AGENT is not set) it is a group of one, with an engine like any other and nothing else.
//
//   Init -> Enqueue, handles().Wait ... -> Shutdown -> Init (the next generation) -> ...
//
// When the agent is lost the engine fails everything with Unavailable and the reason; Shutdown works as ever, Init does
// not any more. A lost peer is reported to the person at the launcher, through the agent, once per generation.
//
// Threads: everything may be called from any thread. Init and Shutdown take turns. The threads of a group of one are
// its engine's; inside of a job gRPC has some as well.
//
// Not for use in a child made by fork(): see fork_guard.h.
class WorkerRuntime {
 public:
  using Lookup = std::function<const char*(const char*)>;

  // `lookup` reads an environment variable (nullptr: not set), at each Init that begins a session.
  explicit WorkerRuntime(Lookup lookup);
  // As Shutdown().
  ~WorkerRuntime();

  // Joins and blocks until all members have; does nothing when initialised. Errors:
  //   DeadlineExceeded    the others have not come by `deadline`: the wait goes on when Init is called again
  //   InvalidArgument     a variable of the environment means nothing
  //   Unavailable         the agent or a member was lost
  //   Aborted             another thread called Shutdown meanwhile
  // After all but the first this worker is outside again. `deadline` bounds the wait for other workers' calls; what
  // only machines do (connecting) has its own, of tens of seconds.
  absl::Status Init(Instant deadline) ABSL_LOCKS_EXCLUDED(life_mutex_, mutex_);

  // Leaves in order: what all members have asked for is finished, the rest fails with Aborted on every rank. Ends an
  // Init that waits in another thread. Does nothing when there is nothing to leave. Handles stay valid.
  void Shutdown() ABSL_LOCKS_EXCLUDED(life_mutex_, mutex_);

  // Nothing when not initialised.
  absl::optional<Place> place() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins all of `requests` as one group, or none; one handle for each. A root and a peer are named by their ranks in
  // the whole group. FailedPrecondition when not initialised; InvalidArgument for a process set that does not exist or
  // that this rank is not in; else the errors of Engine::Enqueue.
  absl::StatusOr<std::vector<Handle>> Enqueue(std::vector<Request> requests, int process_set)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes that all ranks of the group make, in the same order, whether they are in the set or not; blocks until all
  // have called. DeadlineExceeded: not all have; the same call again goes on waiting. InvalidArgument: it makes no set
  // (process_set_table.h), or the ranks do not want the same; nothing has changed. Add returns the set's number.
  absl::StatusOr<int> AddProcessSet(std::vector<Rank> ranks, Instant deadline) ABSL_LOCKS_EXCLUDED(life_mutex_, mutex_);
  absl::Status RemoveProcessSet(int id, Instant deadline) ABSL_LOCKS_EXCLUDED(life_mutex_, mutex_);

  // Null when not initialised.
  std::shared_ptr<Membership> membership() const ABSL_LOCKS_EXCLUDED(mutex_);

  HandleTable& handles() { return handles_; }

 private:
  // A change of process sets that this rank has announced and not all others.
  struct Change {
    const std::string text;
    Handle handle;
  };

  absl::Status AgreeOn(const std::string& text, Instant deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status EndChange(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status InitAlone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status BeginJoin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status ConnectAndJoin(Generation after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::StatusOr<Assignment> AwaitAssignment(Instant deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  absl::Status Adopt(const Assignment& assignment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  void EndSession() ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);
  void Disconnect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_mutex_);

  // On gRPC's threads.
  void OnAssignment(Assignment assignment) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnAgentLost(std::string reason) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<SessionAction> Step(const SessionEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Lookup lookup_;
  const std::shared_ptr<EngineCount> engines_ = std::make_shared<EngineCount>();
  HandleTable handles_;

  // Held through Init and Shutdown. Taken before mutex_; never by callbacks.
  Mutex life_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  WorkerEnvironment environment_ ABSL_GUARDED_BY(life_mutex_);
  bool warned_of_launcher_ ABSL_GUARDED_BY(life_mutex_) = false;
  JoinedJob job_ ABSL_GUARDED_BY(life_mutex_);
  std::unique_ptr<TcpListener> listener_ ABSL_GUARDED_BY(life_mutex_);
  std::unique_ptr<SlabSource> slabs_ ABSL_GUARDED_BY(life_mutex_);
  std::unique_ptr<AgentClient> client_ ABSL_GUARDED_BY(life_mutex_);  // set while there is a session

  mutable Mutex mutex_;
  CondVar changed_;
  SessionState state_ ABSL_GUARDED_BY(mutex_);
  int shutdowns_ ABSL_GUARDED_BY(mutex_) = 0;                    // calls of Shutdown that wait for their turn
  absl::optional<Assignment> assigned_ ABSL_GUARDED_BY(mutex_);  // to be adopted
  std::string lost_ ABSL_GUARDED_BY(mutex_);                     // why the agent is gone; empty: it is not
  std::shared_ptr<Membership> membership_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Change> change_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
