#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"
#include "worker/runtime/assignment.h"

namespace farandole {

// What the agent answers to a worker that joins.
struct JoinedJob {
  std::string host;  // this host's name as the user wrote it
  int slot = 0;
  std::string job_key;      // secret
  std::string slab_socket;  // where the agent gives out shared memory
};

// A worker's connection to the agent of its host (WorkerService): one worker, one connection, no retries. An agent that
// is lost does not come back, and its workers are not meant to outlive it for long.
//
//   Connect -> Join -> Watch -> [Report ...] -> Leave -> destroyed.   A worker that comes back makes a new client.
//
// Errors of all calls: Unavailable: the agent is gone; DeadlineExceeded: it did not answer in time; NotFound: it knows
// no worker of this incarnation; FailedPrecondition: it speaks no protocol of ours. Messages name the agent's address.
//
// Thread-safe, but for Watch (once) and the destructor. The callbacks of Watch run on gRPC's threads, one at a time;
// they must not destroy the client nor block.
class AgentClient {
 public:
  using OnAssignment = std::function<void(Assignment)>;
  using OnLost = std::function<void(std::string reason)>;

  static absl::StatusOr<std::unique_ptr<AgentClient>> Connect(const std::string& address, Incarnation incarnation);
  virtual ~AgentClient() = default;  // ends Watch and what Report has under way; no callback runs after it

  // Says that this worker, whose data listener accepts at `endpoint`, wants a place in a generation above `after`.
  virtual absl::StatusOr<JoinedJob> Join(const std::string& endpoint, Generation after, Instant deadline) = 0;

  // Calls `on_assignment` with the newest generation above `after` and then with each newer one (some may be skipped;
  // one without this worker has group.rank -1), and `on_lost` once when the agent has gone or sends what makes no
  // sense.
  virtual void Watch(Generation after, OnAssignment on_assignment, OnLost on_lost) = 0;

  // Says that a peer of `generation` was lost, in a sentence for the person at the launcher: what fails here after that
  // did not begin here. Returns when the agent has it, so that it is ahead of this process's own end; after half a
  // second, or when the agent is gone, without.
  virtual void Report(Generation generation, const std::string& text) = 0;

  // Says that this worker takes no part in `generation` any more.
  virtual absl::Status Leave(Generation generation, Instant deadline) = 0;
};

}  // namespace farandole
