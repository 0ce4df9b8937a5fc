// The only place of the launcher that chooses the real parts of a job and connects them.

#include "launcher/job.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/driver_view.h"
#include "driver/core/ids.h"
#include "driver/core/worker_command.h"
#include "driver/runtime/driver_runtime.h"
#include "launcher/cli/command_line.h"
#include "launcher/cli/env_names.h"
#include "launcher/cli/hosts.h"
#include "launcher/exec/function_folder.h"
#include "launcher/exec/local_hosts.h"
#include "launcher/exec/local_starter.h"
#include "launcher/exec/output_mux.h"
#include "launcher/exec/report.h"
#include "launcher/exec/ssh_starter.h"
#include "launcher/exec/starter_by_host.h"
#include "launcher/exec/watching.h"
#include "launcher/fail.h"
#include "launcher/host_networks.h"
#include "launcher/plan/environment.h"
#include "launcher/ssh/libssh_connector.h"
#include "launcher/ssh/openssh_connector.h"
#include "launcher/ssh/remote_shell.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// The parts of one job. Each outlives those below it.
class Job {
 public:
  Job(const LaunchRequest& request, const JobPlan& plan, std::string agent_program)
      : request_(request),
        plan_(plan),
        agent_program_(std::move(agent_program)),
        id_(absl::StrFormat("%016x", RandomId())),
        networks_(request.networks, !plan.any_remote && request.networks.empty()) {}

  int Run(Interrupts* interrupts);

 private:
  absl::Status MakeFunction();
  absl::Status MakeOutput();
  absl::Status MakeStarters();
  absl::Status MakeRuntime();
  absl::Status MakeSshStarter();
  RemoteTarget TargetOf(const std::string& host) const;
  WorkerCommand CommandOf(const WorkerId& worker, const Placement& placement) const;
  void OnView(const DriverView& view);
  void NoteStrangers(const AgentServiceStats& stats);
  void NoteVerdict(const Verdict& verdict);
  std::string Report(const Verdict& verdict) const;

  const LaunchRequest& request_;
  const JobPlan& plan_;
  const std::string agent_program_;
  const std::string id_;
  HostNetworks networks_;
  std::unique_ptr<FunctionFolder> function_;  // null: a program is started, not a function
  std::unique_ptr<OutputMux> output_;
  std::unique_ptr<Watching> watching_;
  std::unique_ptr<RemoteConnector> connector_;
  std::unique_ptr<LocalStarter> local_;
  std::unique_ptr<SshStarter> ssh_;
  std::unique_ptr<StarterByHost> starter_;
  std::unique_ptr<DriverRuntime> runtime_;
  std::vector<std::string> listening_;  // as far as it was noted
};

absl::Status Job::MakeFunction() {
  const char* const folder = std::getenv(env::kFunctionFolder);
  if (folder == nullptr || *folder == '\0') return absl::OkStatus();
  ASSIGN_OR_RETURN(function_, FunctionFolder::Open(folder), std::move(_) << env::kFunctionFolder);
  return absl::OkStatus();
}

absl::Status Job::MakeOutput() {
  OutputMuxOptions options;
  options.prefix = request_.timestamps ? request_.output_prefix.WithTime() : request_.output_prefix;
  options.directory = request_.output_directory;
  options.np = request_.np;
  options.instance_directory = request_.instance_directory;
  options.job = id_;
  options.results = function_.get();
  ASSIGN_OR_RETURN(output_, OutputMux::Create(options));
  watching_ = std::make_unique<Watching>(output_.get(), request_.verbose, ::isatty(STDERR_FILENO));
  return absl::OkStatus();
}

absl::Status Job::MakeStarters() {
  LocalStarterOptions options;
  options.agent_program = agent_program_;
  options.grace = plan_.config.grace;
  options.data_address = [this](const std::string& host) { return plan_.hosts.at(host).data_address; };
  options.on_line = [this](const std::string& host, absl::string_view line) {
    output_->Note(absl::StrCat("farandole: agent on ", host, ": ", line));
  };
  options.on_note = [this](const std::string& text) { watching_->Note(text); };
  ASSIGN_OR_RETURN(local_, LocalStarter::Create(std::move(options)));
  if (plan_.any_remote) {
    RETURN_IF_ERROR(MakeSshStarter());
  }
  starter_ = std::make_unique<StarterByHost>([this](const std::string& host) -> AgentStarter* {
    if (plan_.IsRemote(host)) return ssh_.get();
    return local_.get();
  });
  return absl::OkStatus();
}

absl::Status Job::MakeSshStarter() {
  const bool openssh = request_.ssh.backend == SshOptions::Backend::kOpenssh;
  connector_ = openssh ? MakeOpensshConnector({}) : MakeLibsshConnector({});
  SshStarterOptions options;
  options.connector = connector_.get();
  options.target = [this](const std::string& host) { return TargetOf(host); };
  options.via = [this](const std::string& host) {
    const auto via = plan_.reached_through.find(host);
    return via == plan_.reached_through.end() ? std::string() : via->second;
  };
  options.agent_program = agent_program_;
  options.grace = plan_.config.grace;
  options.lost_after = plan_.config.lost_after;
  options.on_line = [this](const std::string& host, absl::string_view line) {
    output_->Note(absl::StrCat("farandole: agent on ", host, ": ", line));
  };
  options.on_note = [this](const std::string& text) { watching_->Note(text); };
  ASSIGN_OR_RETURN(ssh_, SshStarter::Create(std::move(options)));
  return absl::OkStatus();
}

RemoteTarget Job::TargetOf(const std::string& host) const {
  const HostSpec& spec = plan_.specs.at(host);
  RemoteTarget target;
  target.host = spec.name;
  target.user = spec.user;
  target.port = spec.ssh_port != 0 ? spec.ssh_port : request_.ssh.port;
  target.identity_file = request_.ssh.identity_file;
  target.accept_new_host_keys = request_.ssh.accept_new_host_keys;
  return target;
}

absl::Status Job::MakeRuntime() {
  DriverRuntimeOptions options;
  options.job = id_;
  options.job_key = RandomBytes(32);
  options.config = plan_.config;
  options.has_remote_hosts = plan_.any_remote;
  if (request_.port_range) {
    options.first_port = request_.port_range->first;
    options.last_port = request_.port_range->last;
  }
  options.command = [this](const WorkerId& worker, const Placement& placement) { return CommandOf(worker, placement); };
  options.admit = [this](const std::string& host, const std::vector<OfferedAddress>& offered) {
    return networks_.Admit(host, offered);
  };
  if (function_ != nullptr) options.worker_input = function_->function();
  options.starter = starter_.get();
  options.output = output_.get();
  options.on_view = [this](const DriverView& view) { OnView(view); };
  options.on_reason = [this](absl::string_view reason) { watching_->Note(reason); };
  ASSIGN_OR_RETURN(runtime_, DriverRuntime::Create(std::move(options)));
  return absl::OkStatus();
}

WorkerCommand Job::CommandOf(const WorkerId& worker, const Placement& placement) const {
  WorkerHost host;
  host.name = worker.slot.host;
  host.remote = plan_.IsRemote(host.name);
  host.interfaces = networks_.InterfacesOf(host.name);
  host.interfaces_chosen = networks_.were_asked_for();
  WorkerCommand command;
  command.data_addresses = networks_.AddressesOf(host.name);
  if (command.data_addresses.empty()) host.interfaces = {LoopbackInterface()};
  command.arguments = request_.command;
  command.environment = plan_.environments->For(host, placement);
  command.working_directory = plan_.working_directory;
  command.wants_result = function_ != nullptr;
  return command;
}

void Job::OnView(const DriverView& view) {
  watching_->OnView(view);
  if (!request_.verbose || runtime_ == nullptr) return;
  const std::vector<std::string> listening = runtime_->listeners().listening;
  for (size_t i = listening_.size(); i < listening.size(); ++i) {
    watching_->Note(absl::StrCat("the driver listens on ", listening[i]));
  }
  listening_ = listening;
}

// What came to the driver's listeners and was none of ours.
void Job::NoteStrangers(const AgentServiceStats& stats) {
  const int64_t strangers =
      stats.other_users + stats.tls.refused + stats.tls.expired + stats.tls.evicted + stats.relays_refused;
  if (strangers == 0) return;
  watching_->Note(absl::StrCat("connections of strangers to the driver: ", strangers, " (", stats.other_users,
                               " of other users, ", stats.tls.refused, " without proof, ", stats.tls.expired,
                               " silent, ", stats.tls.evicted, " too many, ", stats.relays_refused,
                               " relays that nobody asked for)"));
}

// For whoever gave us the function.
void Job::NoteVerdict(const Verdict& verdict) {
  if (function_ == nullptr) return;
  const absl::Status written = function_->WriteVerdict(verdict);
  if (!written.ok()) output_->Note(absl::StrCat("farandole: ", written.message()));
}

std::string Job::Report(const Verdict& verdict) const {
  ReportInputs inputs;
  inputs.verdict = verdict;
  inputs.np = request_.np;
  inputs.failed_at = watching_->ended_at();
  inputs.zone = absl::LocalTimeZone();
  inputs.colour = ::isatty(STDERR_FILENO) && std::getenv("NO_COLOR") == nullptr;
  inputs.last_error_lines = [this](const WorkerId& worker) { return output_->LastErrorLines(worker); };
  return FinalReport(inputs);
}

int Job::Run(Interrupts* interrupts) {
  if (const absl::Status made = MakeFunction(); !made.ok())
    return Fail(UsageError::kExitCode, request_.called_as, made);
  if (const absl::Status made = MakeOutput(); !made.ok()) return Fail(UsageError::kExitCode, request_.called_as, made);
  for (const std::string& note : plan_.notes) output_->Note(absl::StrCat("farandole: ", note));
  watching_->Note(
      absl::StrCat(request_.np, request_.np == 1 ? " process on " : " processes on ", DescribeHosts(request_.hosts)));
  if (const absl::Status made = MakeStarters(); !made.ok()) return Fail(kFailed, request_.called_as, made);
  if (const absl::Status made = MakeRuntime(); !made.ok()) return Fail(kFailed, request_.called_as, made);

  interrupts->Attach(runtime_.get(), output_.get());
  const Verdict verdict = runtime_->Run();
  if (runtime_->output_given_up()) output_->Abandon();  // a write that still goes on returns
  interrupts->DetachRuntime();
  NoteStrangers(runtime_->listeners());
  runtime_.reset();
  ssh_.reset();
  local_.reset();  // nothing of the job is left from here on
  NoteVerdict(verdict);
  output_->EndProgress();
  const std::string report = Report(verdict);
  if (!report.empty()) output_->Note(report);
  output_->Flush();
  interrupts->DetachOutput();
  return verdict.exit_code;
}

}  // namespace

int RunJob(const LaunchRequest& request, const JobPlan& plan, const std::string& agent_program,
           Interrupts* interrupts) {
  return Job(request, plan, agent_program).Run(interrupts);
}

}  // namespace farandole
