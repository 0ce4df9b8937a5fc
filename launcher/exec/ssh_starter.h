#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "driver/runtime/agent_starter.h"
#include "launcher/ssh/remote_shell.h"

namespace farandole {

struct SshStarterOptions {
  RemoteConnector* connector = nullptr;  // outlives the starter
  // Where a host of the job is, by its name in the job.
  std::function<RemoteTarget(const std::string& host)> target;
  // Through which host of this starter a host is reached, by their names in the job; "" is none, and so is an empty
  // function. The host waits for that one's agent, and is reached from here when that one has failed, or two attempts
  // through it have. Not with OpenSSH.
  std::function<std::string(const std::string& host)> via;
  std::string agent_program;                             // its path here
  absl::Duration grace;                                  // between TERM and KILL for workers whose driver is gone
  absl::Duration lost_after = absl::InfiniteDuration();  // as in bootstrap_writer.h
  int parallel = 32;                                     // hosts that are being connected to at one time
  // How long one attempt to connect and authenticate may take, and to bring and start the agent.
  absl::Duration patience_connect = absl::Seconds(20);
  absl::Duration patience_push = absl::Seconds(300);
  // How long an agent that is told to end may take.
  absl::Duration patience = absl::Seconds(2);
  // A line that an agent wrote to stdout or stderr, without its end; and, for --verbose, what was done. Called on
  // threads of the starter, several at a time; must not block. May be empty.
  std::function<void(const std::string& host, absl::string_view line)> on_line;
  std::function<void(const std::string& text)> on_note;
};

// Starts agents on other hosts over ssh, each on a thread of its own that lives as long as the agent. What the ways of
// ssh call retryable is repeated, with growing pauses, until Kill(); each time `reached` gets the step that failed with
// the reason and the number of the attempt. The ssh connection stays: its end is the agent's sign that we are gone. One
// that goes through another host may be lost with that host; then the agent lives on, the driver hears from it alone,
// and Kill() reaches it from here.
class SshStarter : public AgentStarter {
 public:
  // Errors: of reading the agent's program.
  static absl::StatusOr<std::unique_ptr<SshStarter>> Create(SshStarterOptions options);

  // Ends everything as Kill() does, and waits for it: a few times `patience` at most. No thread and no child is left.
  ~SshStarter() override = default;

  // `failed` gets, besides the errors of remote_shell.h and agent_push.h: Unavailable: the agent has ended, with how
  // and its last words, or its connection was lost; Cancelled: by Kill() before it was started.
  void Start(const AgentStart& start, AgentStartEvents events) override = 0;

  // Stops trying, or closes the agent's standard input; one that does not end then within `patience` gets a KILL.
  void Kill(const std::string& host) override = 0;
};

}  // namespace farandole
