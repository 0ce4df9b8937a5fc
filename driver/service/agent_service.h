#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/events.h"
#include "driver/core/worker_command.h"
#include "driver/security/job_authority.h"
#include "proto/convert/driver_convert.h"
#include "proto/rpc/tls_server.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

struct AgentServiceOptions {
  std::string job;
  absl::Duration heartbeat_interval;
  // Bytes of output that an agent may have sent and the driver not yet written.
  int64_t output_window = 1 << 20;
  // What every worker is given as standard input; null: nothing.
  std::shared_ptr<const std::string> worker_input;
  // The job's, for agents on other machines; outlives the service. Null: there are none.
  const JobAuthority* authority = nullptr;
  // Ports that Listen() may take, both included; 0 to 0: any.
  int first_port = 0, last_port = 0;
  // Connections from elsewhere that may wait for their proof at a time: more than the hosts of the job.
  int max_unproven = 256;
};

// What goes on at the listeners, for people.
struct AgentServiceStats {
  std::vector<std::string> listening;  // the unix socket, then "ADDRESS:PORT"
  int64_t other_users = 0;             // connections to the unix socket that were of another user
  TlsServerStats tls;                  // of all others
  int64_t relays_refused = 0;          // calls of agents for a relay that was not theirs
};

// With a connected stream socket, or with why there is none.
using RelayDone = std::function<void(absl::StatusOr<UniqueFd>)>;

// What the service passes on. Called on gRPC's threads: for one agent in the order in which it spoke, for several at
// the same time. Must not block, nor call the service.
class AgentListener {
 public:
  virtual ~AgentListener() = default;
  // Of an agent: ready (with a `worker_input`: progress, and ready when all of that is sent), heard, and at the end of
  // its stream ended (it had been told to) or failed (it had not). Of its workers: all.
  virtual void OnEvent(Event event) = 0;
  // Each piece is given back with ReturnCredit() once it is written.
  virtual void OnOutput(const AgentIdentity& from, OutputPiece piece) = 0;
  virtual void OnOutputEnd(OutputEnd end) = 0;
  virtual void OnNotice(NoticeForPeople notice) = 0;
};

// The driver's end of the agents' streams (proto/v1/agent_service.proto): checks, converts, passes on; decides nothing.
// What is for an agent that is not connected is dropped: that it is not is an event already. Each agent that is
// connected hears something every `heartbeat_interval`, so that it sees a dead link.
//
// Agents on this machine come over a unix socket, whose kernel says that they are of this user or root. Agents
// elsewhere come over mutual TLS, and are who their certificate says: host and incarnation.
//
// Thread-safe, but for Shutdown(), which is called once, or left to the destructor.
class AgentService {
 public:
  // Opens the listener. `listener` outlives the service. Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<AgentService>> Start(AgentServiceOptions options, AgentListener* listener);
  virtual ~AgentService() = default;

  // What agents on this machine dial.
  virtual std::string address() const = 0;

  // Opens, once for each, a listener on a numeric address of this machine, for agents elsewhere; returns
  // "ADDRESS:PORT". Errors: those of TlsServer; FailedPrecondition: there is no authority.
  virtual absl::StatusOr<std::string> Listen(const std::string& address) = 0;

  virtual AgentServiceStats stats() const = 0;

  // From now on this agent, and no other one of its host, may register.
  virtual void Expect(const AgentIdentity& agent) = 0;

  // On an agent that was reported as ready.
  virtual void Spawn(const SpawnWorker& action, const WorkerCommand& command) = 0;
  virtual void Signal(const SignalWorker& action) = 0;
  // To all agents that are connected.
  virtual void Assign(const SendAssignment& action) = 0;
  // False if the agent is not connected; then it cannot register any more either.
  virtual bool End(const EndAgent& action) = 0;
  // Ends the connection of an agent, if there is one, without a word.
  virtual void Drop(const AgentIdentity& agent) = 0;
  // `bytes` of what OnOutput() passed on have been written.
  virtual void ReturnCredit(const AgentIdentity& agent, int64_t bytes) = 0;

  // Connects to a numeric address from the host of an agent, through that agent, as soon as it is connected itself.
  // `done` is called once, in this call or later on a thread of the service's, which it must not block. The socket is
  // one of this process; what is written to it comes out there, each end hears of the other's half-close and end, and
  // it is closed when the agent is gone. Errors: NotFound: no such agent is connected or expected; Unavailable: the
  // agent could not connect, with its words, or is gone; DeadlineExceeded; all name host and address.
  virtual void OpenRelay(const std::string& via, const std::string& address, int port, Instant deadline,
                         RelayDone done) = 0;

  // Takes no new agents; waits until `deadline` for the streams to end, then cuts them. Blocks; the listener is called
  // until it returns, and not after.
  virtual void Shutdown(Instant deadline) = 0;
};

}  // namespace farandole
