#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/core/host_step.h"
#include "proto/rpc/tls_identity.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// What an agent has to be told at its start.
struct AgentStart {
  std::string job;
  std::string host;
  Incarnation incarnation;
  std::string job_key;  // secret

  // For an agent on this machine: a gRPC target, "unix-abstract:NAME".
  std::string local_address;

  // For one elsewhere: what it proves itself with to the driver, and the driver to it. `listen` opens, once for each, a
  // listener on a numeric address of this machine and returns "ADDRESS:PORT"; from any thread, as long as the agent has
  // not ended. Errors: Unavailable, with the address and the reason.
  TlsIdentity credentials;
  std::function<absl::StatusOr<std::string>(const std::string& address)> listen;

  // Also for one elsewhere: connects to a numeric address from the host of another agent, through that agent, as soon
  // as it has called back. `done` is called once, now or later on any thread, which it must not block, with a connected
  // stream socket that lasts as long as that agent. From any thread, as long as this agent has not ended. Errors:
  // NotFound: there is no such agent, or none any more; Unavailable: it could not connect, with its words, or is gone;
  // DeadlineExceeded.
  using RelayDone = std::function<void(absl::StatusOr<UniqueFd>)>;
  std::function<void(const std::string& via, const std::string& address, int port, Instant deadline, RelayDone done)>
      open_relay;
};

// What a starter tells of one agent, from any thread.
struct AgentStartEvents {
  // The host has come to `step`. The same step again, with a note: an attempt there has failed in a way that may pass,
  // and is repeated.
  std::function<void(HostStep step, std::string note)> reached;
  // It turned out impossible to start the agent, in a way that waiting cannot cure, or its process has ended, however
  // (a driver that has seen the agent's stream end in order ignores that). Called at most once, and last.
  std::function<void(absl::Status)> failed;
};

// Starts agents on hosts and is responsible for their end. The driver declares what it needs; launcher/exec has the
// ways (local and ssh; schedulers later), tests a fake.
class AgentStarter {
 public:
  virtual ~AgentStarter() = default;

  // Begins to start an agent; does not block. What may pass (a name that is not known yet, a refused connection) is
  // tried again until Kill().
  virtual void Start(const AgentStart& start, AgentStartEvents events) = 0;

  // Ends the agent of `host` by force, with everything that it started: for an agent that does not answer, or was never
  // reached. Does not block.
  virtual void Kill(const std::string& host) = 0;
};

}  // namespace farandole
