#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "tools/base/ids.h"

namespace farandole {

// What an agent has to be told at its start.
struct AgentStart {
  std::string job;
  std::string host;
  Incarnation incarnation;
  std::string driver_address;  // a gRPC target
  std::string job_key;         // secret
};

// Starts agents on hosts and is responsible for their end. The driver declares what it needs; launcher/exec has the
// ways (local now; ssh and schedulers later), tests a fake.
class AgentStarter {
 public:
  virtual ~AgentStarter() = default;

  // Begins to start an agent; does not block. `failed` is called, from any thread, if that turns out impossible or the
  // agent's process ends, however it ends (a driver that has seen the agent's stream end in order ignores it). Called
  // at most once.
  virtual void Start(const AgentStart& start, std::function<void(absl::Status)> failed) = 0;

  // Ends the agent of `host` by force, with everything that it started: for an agent that does not answer. Does not
  // block.
  virtual void Kill(const std::string& host) = 0;
};

}  // namespace farandole
