#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/exec/agent_program.h"
#include "launcher/ssh/remote_shell.h"
#include "tools/base/instant.h"

namespace farandole {

// An agent that runs on another host and waits for its bootstrap on standard input.
struct RemoteAgent {
  std::unique_ptr<RemoteProcess> process;
  int64_t pid = 0;
  // As the host sees the two ends of the connection; empty if it does not say.
  std::string our_address, its_address;
  std::string stdout_so_far;  // of the agent
};

// Starts the agent there, which is brought there first if the host has none of the same content (push_script.h).
// `on_note` gets a line about that. What was started stays if this fails late: the caller drops the shell.
//
// Errors as in remote_shell.h; FailedPrecondition also: the host's system or machine is another; it has no folder for
// the program; its login shell ends at once, with its last words.
absl::StatusOr<RemoteAgent> StartRemoteAgent(RemoteShell& shell, AgentProgram& program, Instant deadline,
                                             const std::function<void(absl::string_view)>& on_note);

// Ends it by force, by a second process. Errors as in remote_shell.h.
absl::Status KillRemoteAgent(RemoteShell& shell, const AgentProgram& program, int64_t pid, Instant deadline);

}  // namespace farandole
