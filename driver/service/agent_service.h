#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/events.h"
#include "driver/core/worker_command.h"
#include "proto/convert/driver_convert.h"
#include "tools/base/instant.h"

namespace farandole {

struct AgentServiceOptions {
  std::string job;
  absl::Duration heartbeat_interval;
  // Bytes of output that an agent may have sent and the driver not yet written.
  int64_t output_window = 1 << 20;
};

// What the service passes on. Called on gRPC's threads: for one agent in the order in which it spoke, for several at
// the same time. Must not block, nor call the service.
class AgentListener {
 public:
  virtual ~AgentListener() = default;
  // Of an agent: ready, heard, and at the end of its stream ended (it had been told to) or failed (it had not). Of its
  // workers: all.
  virtual void OnEvent(Event event) = 0;
  // Each piece is given back with ReturnCredit() once it is written.
  virtual void OnOutput(const AgentIdentity& from, OutputPiece piece) = 0;
  virtual void OnOutputEnd(OutputEnd end) = 0;
  virtual void OnNotice(NoticeForPeople notice) = 0;
};

// The driver's end of the agents' streams (proto/v1/agent_service.proto): checks, converts, passes on; decides nothing.
// What is for an agent that is not connected is dropped: that it is not is an event already.
//
// Thread-safe, but for Shutdown(), which is called once, or left to the destructor.
class AgentService {
 public:
  // Opens the listener. `listener` outlives the service. Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<AgentService>> Start(AgentServiceOptions options, AgentListener* listener);
  virtual ~AgentService() = default;

  // What agents dial.
  virtual std::string address() const = 0;

  // From now on this agent, and no other one of its host, may register.
  virtual void Expect(const AgentIdentity& agent) = 0;

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

  // Takes no new agents; waits until `deadline` for the streams to end, then cuts them. Blocks; the listener is called
  // until it returns, and not after.
  virtual void Shutdown(Instant deadline) = 0;
};

}  // namespace farandole
