// `farandole run` and `horovodrun`: reads the command line, makes the parts of one job, runs it, reports, and ends with
// its exit code. The only place of the launcher that chooses real parts.

#include <limits.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "driver/core/actions.h"
#include "driver/core/driver_config.h"
#include "driver/core/driver_view.h"
#include "driver/core/ids.h"
#include "driver/core/worker_command.h"
#include "driver/runtime/driver_runtime.h"
#include "launcher/cli/command_line.h"
#include "launcher/cli/env_names.h"
#include "launcher/cli/help.h"
#include "launcher/cli/hosts.h"
#include "launcher/exec/check_build.h"
#include "launcher/exec/local_hosts.h"
#include "launcher/exec/local_starter.h"
#include "launcher/exec/output_mux.h"
#include "launcher/exec/progress.h"
#include "launcher/exec/read_file.h"
#include "launcher/exec/report.h"
#include "launcher/exec/signals.h"
#include "launcher/plan/environment.h"
#include "launcher/plan/launch_plan.h"
#include "tools/base/mutex.h"
#include "tools/base/random_bytes.h"

namespace farandole {
namespace {

constexpr int kFailed = 1;  // something of ours or of the machine; nothing about the program
constexpr absl::Duration kPythonPatience = absl::Seconds(20);

absl::optional<std::string> Environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return absl::nullopt;
  return value;
}

std::vector<std::string> WholeEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

int Fail(int exit_code, absl::string_view called_as, const absl::Status& status) {
  const std::string text = absl::StrCat(called_as, ": ", status.message(), "\n");
  std::fputs(text.c_str(), stderr);
  return exit_code;
}

// Passes signals to the driver from when there is one. The third is from a person who has waited enough: output that
// nobody reads is no longer waited for; nor is any after the driver has gone.
class Interrupts {
 public:
  void On(int signal) {
    MutexLock lock(&mutex_);
    ++count_;
    last_ = signal;
    if (runtime_ != nullptr) runtime_->Interrupt(signal);
    if (output_ != nullptr && (count_ > 2 || runtime_ == nullptr)) output_->Abandon();
  }

  void Attach(DriverRuntime* runtime, OutputMux* output) {
    MutexLock lock(&mutex_);
    runtime_ = runtime;
    output_ = output;
    if (count_ > 0) runtime_->Interrupt(last_);
  }

  void DetachRuntime() {
    MutexLock lock(&mutex_);
    runtime_ = nullptr;
  }

  void DetachOutput() {
    MutexLock lock(&mutex_);
    output_ = nullptr;
  }

 private:
  Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  int last_ ABSL_GUARDED_BY(mutex_) = 0;
  DriverRuntime* runtime_ ABSL_GUARDED_BY(mutex_) = nullptr;
  OutputMux* output_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// What a person sees of a job besides its output: the progress line, --verbose, and when it began to fail. On the loop.
class Watching {
 public:
  Watching(OutputMux& output, bool verbose) : output_(output), verbose_(verbose), progress_(::isatty(STDERR_FILENO)) {}

  void OnView(const DriverView& view) {
    if (progress_ && !IsStarted(view)) output_.Progress(ProgressText(view));
    if (progress_ && IsStarted(view)) output_.EndProgress();
    progress_ = progress_ && !IsStarted(view);
    if (!ended_at_ && view.phase == JobPhase::kEnding) ended_at_ = absl::Now();
    if (!verbose_) return;
    for (const DriverView::Worker& worker : view.workers) {
      if (worker.endpoint.empty() || !listeners_.insert(worker.endpoint).second) continue;
      Note(absl::StrCat("rank ", worker.placement.rank, " listens on ", worker.endpoint));
    }
  }

  void Note(absl::string_view text) {
    if (verbose_) output_.Note(absl::StrCat("farandole: ", text));
  }

  absl::optional<absl::Time> ended_at() const { return ended_at_; }

 private:
  OutputMux& output_;
  const bool verbose_;
  bool progress_;
  absl::optional<absl::Time> ended_at_;
  std::set<std::string> listeners_;
};

// What is known of a job before anything of it is made.
struct Plan {
  DriverConfig config;
  std::map<std::string, std::string> data_addresses;  // by host
  std::string agent_program;
  std::string working_directory;
};

absl::StatusOr<DriverConfig> PlanHosts(const LaunchRequest& request,
                                       std::map<std::string, std::string>* data_addresses) {
  return MakeDriverConfig(request, [&](const std::string& host) -> absl::StatusOr<bool> {
    absl::StatusOr<HostAddress> found = LookUpHost(host);
    if (!found.ok()) return found.status();
    (*data_addresses)[host] = found->data_address;
    return found->local;
  });
}

absl::StatusOr<std::unique_ptr<LocalStarter>> MakeStarter(const Plan& plan, OutputMux& output, Watching& watching) {
  LocalStarterOptions options;
  options.agent_program = plan.agent_program;
  options.grace = plan.config.grace;
  options.data_address = [&plan](const std::string& host) { return plan.data_addresses.at(host); };
  options.on_line = [&output](const std::string& host, absl::string_view line) {
    output.Note(absl::StrCat("farandole: agent on ", host, ": ", line));
  };
  options.on_note = [&watching](const std::string& text) { watching.Note(text); };
  return LocalStarter::Create(std::move(options));
}

absl::StatusOr<std::unique_ptr<DriverRuntime>> MakeRuntime(const LaunchRequest& request, const Plan& plan,
                                                           LocalStarter& starter, OutputMux& output,
                                                           Watching& watching) {
  DriverRuntimeOptions options;
  options.job = absl::StrFormat("%016x", RandomId());
  options.job_key = RandomBytes(32);
  options.config = plan.config;
  options.command = [&request, &plan, job = JobEnvironment{WholeEnvironment(), LoopbackInterface()}](
                        const WorkerId& worker, const Placement& placement) {
    WorkerCommand command;
    command.arguments = request.command;
    command.environment = WorkerEnvironment(job, worker.slot.host, placement);
    command.working_directory = plan.working_directory;
    return command;
  };
  options.starter = &starter;
  options.output = &output;
  options.on_view = [&watching](const DriverView& view) { watching.OnView(view); };
  options.on_reason = [&watching](absl::string_view reason) { watching.Note(reason); };
  return DriverRuntime::Create(std::move(options));
}

std::string Report(const Verdict& verdict, const LaunchRequest& request, const Watching& watching,
                   const OutputMux& output) {
  ReportInputs inputs;
  inputs.verdict = verdict;
  inputs.np = request.np;
  inputs.failed_at = watching.ended_at();
  inputs.zone = absl::LocalTimeZone();
  inputs.colour = ::isatty(STDERR_FILENO) && std::getenv("NO_COLOR") == nullptr;
  inputs.last_error_lines = [&output](const WorkerId& worker) { return output.LastErrorLines(worker); };
  return FinalReport(inputs);
}

// Everything from the first process to the last line. Each part outlives those below it.
int Run(const LaunchRequest& request, const Plan& plan, Interrupts& interrupts) {
  OutputMuxOptions output_options;
  output_options.timestamps = request.timestamps;
  output_options.directory = request.output_directory;
  output_options.np = request.np;
  absl::StatusOr<std::unique_ptr<OutputMux>> output = OutputMux::Create(output_options);
  if (!output.ok()) return Fail(UsageError::kExitCode, request.called_as, output.status());
  Watching watching(**output, request.verbose);
  watching.Note(
      absl::StrCat(request.np, request.np == 1 ? " process on " : " processes on ", DescribeHosts(request.hosts)));

  absl::StatusOr<std::unique_ptr<LocalStarter>> starter = MakeStarter(plan, **output, watching);
  if (!starter.ok()) return Fail(kFailed, request.called_as, starter.status());
  absl::StatusOr<std::unique_ptr<DriverRuntime>> runtime = MakeRuntime(request, plan, **starter, **output, watching);
  if (!runtime.ok()) return Fail(kFailed, request.called_as, runtime.status());

  interrupts.Attach(runtime->get(), output->get());
  const Verdict verdict = (*runtime)->Run();
  if ((*runtime)->output_given_up()) (*output)->Abandon();  // a write that still goes on returns
  interrupts.DetachRuntime();
  runtime->reset();
  starter->reset();  // nothing of the job is left from here on
  (*output)->EndProgress();
  const std::string report = Report(verdict, request, watching, **output);
  if (!report.empty()) (*output)->Note(report);
  (*output)->Flush();
  interrupts.DetachOutput();
  return verdict.exit_code;
}

int Start(const LaunchRequest& request) {
  Plan plan;
  absl::StatusOr<DriverConfig> config = PlanHosts(request, &plan.data_addresses);
  if (!config.ok()) return Fail(UsageError::kExitCode, request.called_as, config.status());
  plan.config = *std::move(config);
  absl::StatusOr<std::string> agent = FindAgentProgram(Environment(env::kAgentProgram).value_or(""));
  if (!agent.ok()) return Fail(kFailed, request.called_as, agent.status());
  plan.agent_program = *std::move(agent);
  char folder[PATH_MAX];
  if (::getcwd(folder, sizeof folder) == nullptr) {
    return Fail(kFailed, request.called_as, absl::NotFoundError("the folder that this was started in is gone"));
  }
  plan.working_directory = folder;
  std::signal(SIGPIPE, SIG_IGN);
  Interrupts interrupts;
  SignalWatcher signals([&interrupts](int signal) { interrupts.On(signal); });
  return Run(request, plan, interrupts);
}

int Show(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

struct Act {
  int operator()(const LaunchRequest& request) const { return Start(request); }
  int operator()(const PrintText& print) const { return Show(print.text); }
  int operator()(const CheckBuildRequest& request) const {
    return Show(CheckBuildText(VersionOf("horovodrun"), AskPython(kPythonPatience), request.verbose));
  }
  int operator()(const UsageError& error) const {
    std::fputs(error.message.c_str(), stderr);
    return UsageError::kExitCode;
  }
};

}  // namespace
}  // namespace farandole

int main(int argc, char** argv) {
  farandole::CommandLineInputs inputs;
  inputs.arguments.assign(argv, argv + argc);
  inputs.environment = farandole::Environment;
  inputs.read_file = farandole::ReadFile;
  return std::visit(farandole::Act(), farandole::ParseCommandLine(inputs));
}
