#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "driver/core/actions.h"
#include "driver/core/driver_config.h"
#include "driver/core/driver_view.h"
#include "driver/core/ids.h"
#include "driver/core/worker_command.h"
#include "driver/runtime/agent_starter.h"
#include "driver/runtime/output_sink.h"
#include "driver/service/agent_service.h"

namespace farandole {

struct DriverRuntimeOptions {
  std::string job;      // its id
  std::string job_key;  // 32 random bytes
  DriverConfig config;
  // The command of a worker that is told this place at its start. Called on the loop.
  std::function<WorkerCommand(const WorkerId&, const Placement&)> command;
  // Whether a host may take part that has these addresses; asked once, on the loop, when its agent has called back. An
  // error fails the host with its message. Empty: yes.
  std::function<absl::Status(const std::string& host, const std::vector<OfferedAddress>& addresses)> admit;
  // Whether there are hosts other than this machine: then the job has an authority that signs a certificate for each
  // agent, and the driver listens where starters ask for it, on ports of this range (0 to 0: any).
  bool has_remote_hosts = false;
  int first_port = 0, last_port = 0;
  // What every worker is given as standard input; null: nothing. An agent is ready once it has it.
  std::shared_ptr<const std::string> worker_input;
  AgentStarter* starter = nullptr;  // outlives the runtime
  OutputSink* output = nullptr;     // outlives the runtime
  // Called on the loop after the view has changed, and with each action in words and its reason, for progress and
  // --verbose. May be empty.
  std::function<void(const DriverView&)> on_view;
  std::function<void(absl::string_view reason)> on_reason;
};

// Runs one job: owns the loop that feeds DriverCore, the gRPC service of the agents, and the thread that writes output.
// Decides nothing itself. What a worker's library has to tell a person comes as a line on that worker's stderr.
class DriverRuntime {
 public:
  // Opens the driver's listener. Errors: InvalidArgument: the configuration, with all problems; Unavailable: no
  // listener; Internal: no certificates.
  static absl::StatusOr<std::unique_ptr<DriverRuntime>> Create(DriverRuntimeOptions options);
  virtual ~DriverRuntime() = default;

  // Runs the job to its end, on the calling thread, and returns when all agents are gone and all output that came from
  // them is written. Called once.
  //
  // An output that is not taken (a pager, a stopped terminal) is waited for, as any program does that writes to one;
  // after a second interrupt, or one when only the output is left, for another second at most. Then a call of
  // OutputSink::Write is still going on, output_given_up() is true, and the sink must live as long as the process.
  virtual Verdict Run() = 0;
  virtual bool output_given_up() const = 0;

  // What goes on at the driver's listeners. From any thread.
  virtual AgentServiceStats listeners() const = 0;

  // A person's Ctrl-C (SIGINT), or SIGTERM. From any thread, at any time.
  virtual void Interrupt(int signal) = 0;
};

}  // namespace farandole
