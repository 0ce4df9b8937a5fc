// `farandole run` and `horovodrun`: reads the command line and does what it asks for.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "launcher/bench/bench.h"
#include "launcher/cli/command_line.h"
#include "launcher/cli/env_names.h"
#include "launcher/cli/help.h"
#include "launcher/cli/launch_request.h"
#include "launcher/cli/request.h"
#include "launcher/exec/check_build.h"
#include "launcher/exec/file_limit.h"
#include "launcher/exec/local_starter.h"
#include "launcher/exec/read_file.h"
#include "launcher/exec/signals.h"
#include "launcher/fail.h"
#include "launcher/interrupts.h"
#include "launcher/job.h"
#include "launcher/job_plan.h"
#include "launcher/plan/dry_run.h"

namespace farandole {
namespace {

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

int Show(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

int Start(const LaunchRequest& request) {
  const absl::StatusOr<JobPlan> plan = MakeJobPlan(request, WholeEnvironment());
  if (!plan.ok()) return Fail(UsageError::kExitCode, request.called_as, plan.status());
  if (request.dry_run) {
    const DryRunInputs inputs = ForDryRun(request, *plan);
    return Show(*request.dry_run == PlanFormat::kJson ? DryRunJson(inputs) : DryRunText(inputs));
  }
  const absl::StatusOr<std::string> agent = FindAgentProgram(Environment(env::kAgentProgram).value_or(""));
  if (!agent.ok()) return Fail(kFailed, request.called_as, agent.status());
  std::signal(SIGPIPE, SIG_IGN);
  RaiseFileLimit();
  Interrupts interrupts;
  SignalWatcher signals([&interrupts](int signal) { interrupts.On(signal); });
  return RunJob(request, *plan, *agent, &interrupts);
}

struct Act {
  const CommandLineInputs& inputs;
  int operator()(const LaunchRequest& request) const { return Start(request); }
  int operator()(const PrintText& print) const { return Show(print.text); }
  int operator()(const CheckBuildRequest& request) const {
    return Show(CheckBuildText(VersionOf("horovodrun"), AskPython(kPythonPatience), request.verbose));
  }
  int operator()(const BenchCommand& bench) const {
    return RunBench(absl::MakeConstSpan(inputs.arguments).subspan(bench.words));
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
  return std::visit(farandole::Act{inputs}, farandole::ParseCommandLine(inputs));
}
