#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "driver/runtime/agent_starter.h"

namespace farandole {

struct BootstrapOptions {
  // Where the agent finds the driver, best first: what `listen` of the start has returned. Empty: the agent is on this
  // machine, and finds it at `local_address`.
  std::vector<std::string> driver_addresses;
  // The address that workers of the host listen on, unless the driver says otherwise for each.
  std::string data_address;
  // Between TERM and KILL for workers whose driver is gone.
  absl::Duration grace;
  // For an agent elsewhere: after so long without an acknowledgement of the driver's machine the driver is gone.
  absl::Duration lost_after = absl::InfiniteDuration();
  // The agent's standard input may end before the job does: it goes through another host.
  bool input_may_end = false;
};

// What an agent reads from its standard input at its start (proto/v1/bootstrap.proto), its length in front. It has
// secrets in it: the job's key and, for an agent elsewhere only, the agent's own. Smaller than a pipe, so that writing
// it to a new one does not block.
std::string BootstrapMessage(const AgentStart& start, const BootstrapOptions& options);

}  // namespace farandole
