#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "driver/runtime/agent_starter.h"
#include "launcher/ssh/cancellation.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Connects to a numeric address by way of the agent of `via`, and waits for it. Errors: those of
// AgentStart::open_relay; Cancelled; FailedPrecondition: the address means another machine there (it is of a loopback
// or of one link).
absl::StatusOr<UniqueFd> DialThrough(const AgentStart& start, const std::string& via, const std::string& address,
                                     int port, Instant deadline, const Cancellation& cancellation);

}  // namespace farandole
