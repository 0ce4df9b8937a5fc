#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "driver/runtime/agent_starter.h"

namespace farandole {

struct LocalStarterOptions {
  std::string agent_program;  // its path
  absl::Duration grace;       // between TERM and KILL for workers whose launcher is gone
  // How long agents may take to end by themselves when the starter ends.
  absl::Duration patience = absl::Seconds(2);
  // The address that the workers of a host listen on.
  std::function<std::string(const std::string& host)> data_address;
  // A line that an agent wrote to its stderr, without its end; and, for --verbose, what was started and ended. Called
  // on the starter's thread; must not block. May be empty.
  std::function<void(const std::string& host, absl::string_view line)> on_line;
  std::function<void(const std::string& text)> on_note;
};

// Where the agent's program is: `from_environment` if it is not empty, else "farandole-agent" beside this program's own
// file. Errors: NotFound or PermissionDenied, with the path and what to do.
absl::StatusOr<std::string> FindAgentProgram(const std::string& from_environment);

// Starts agents as children of this process, each in a session of its own, so that a terminal's signals do not reach
// it: what a Ctrl-C means is decided here. An agent gets its bootstrap (proto/v1/bootstrap.proto) on standard input,
// which stays open for as long as this process lives.
//
// An agent that dies leaves nothing behind: this process is the subreaper of all its descendants, and when an agent has
// ended, whatever has become a child of this process and is no agent is killed, again and again until there is nothing.
// Children from before the starter was made are left alone. While a starter lives the caller starts children of its
// own only through OwnChildren (own_children.h). One starter per process.
class LocalStarter : public AgentStarter {
 public:
  // Errors: of prctl.
  static absl::StatusOr<std::unique_ptr<LocalStarter>> Create(LocalStarterOptions options);

  // Waits until all agents are gone and all that they left: for `patience` by themselves, then by SIGKILL. Bounded: a
  // process that even SIGKILL does not end (a hung disk) is given up kLastPatience later.
  ~LocalStarter() override = default;
  static constexpr absl::Duration kLastPatience = absl::Seconds(5);

  // `failed` is called on the starter's thread. Its message has how the agent ended and its last words:
  //   NotFound, PermissionDenied, ...  the program could not be executed
  //   Unavailable                      the agent has ended
  void Start(const AgentStart& start, AgentStartEvents events) override = 0;
  void Kill(const std::string& host) override = 0;
};

}  // namespace farandole
