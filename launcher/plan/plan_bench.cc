// Prints how long it takes to plan a job of many hosts: reading its host list, its driver's configuration, who reaches
// whom, and the plan as --dry-run shows it.
//
//   bazel run //launcher/plan:plan_bench -- [HOSTS [SLOTS]]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "driver/core/driver_config.h"
#include "launcher/cli/command_line.h"
#include "launcher/cli/launch_request.h"
#include "launcher/plan/dry_run.h"
#include "launcher/plan/environment.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/launch_tree.h"

namespace farandole {
namespace {

class Stopwatch {
 public:
  void Say(const char* what) {
    const auto now = std::chrono::steady_clock::now();
    std::printf("%-28s %8.1f ms\n", what, std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = now;
  }
  ~Stopwatch() {
    std::printf("%-28s %8.1f ms\n", "together", std::chrono::duration<double, std::milli>(last_ - begin_).count());
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = begin_;
};

int Run(int hosts, int slots) {
  std::string file;
  ResolvedHosts resolved;
  for (int i = 0; i < hosts; ++i) {
    const std::string name = absl::StrCat("node", i);
    absl::StrAppend(&file, name, " slots=", slots, "\n");
    resolved[name] = {false, {absl::StrCat("10.", i / 65536, ".", i / 256 % 256, ".", i % 256)}};
  }
  CommandLineInputs inputs;
  inputs.arguments = {"horovodrun", "-np", absl::StrCat(hosts * slots), "--hostfile", "h", "--dry-run",
                      "python",     "t.py"};
  inputs.environment = [](const std::string&) { return absl::optional<std::string>(); };
  inputs.read_file = [&file](const std::string&) -> absl::StatusOr<std::string> { return file; };

  Stopwatch watch;
  const CommandLine line = ParseCommandLine(inputs);
  const auto* request = std::get_if<LaunchRequest>(&line);
  if (request == nullptr) {
    std::fputs(std::get<UsageError>(line).message.c_str(), stderr);
    return UsageError::kExitCode;
  }
  watch.Say("command line, hostfile");
  const absl::StatusOr<DriverConfig> config = MakeDriverConfig(*request);
  if (!config.ok()) return 1;
  const std::vector<std::string> warnings = SameMachineWarnings(*config, resolved);
  watch.Say("driver's configuration");
  const LaunchTree tree(hosts, 32, 8);
  size_t edges = 0;
  for (int host = LaunchTree::kLauncher; host < hosts; ++host) edges += tree.ReachedThrough(host).size();
  watch.Say("tree");
  const WorkerEnvironments environments({{"PATH=/bin"}});
  DryRunInputs plan{request, *config, resolved, "/work", environments.Names(false), environments.Names(true), warnings};
  const std::string text = DryRunText(plan);
  watch.Say("plan as text");
  const std::string json = DryRunJson(plan);
  watch.Say("plan as JSON");
  std::printf("%d hosts x %d slots, tree of depth %d with %zu edges, %zu bytes of text, %zu of JSON\n", hosts, slots,
              tree.Depth(), edges, text.size(), json.size());
  return 0;
}

}  // namespace
}  // namespace farandole

int main(int argc, char** argv) {
  const int hosts = argc > 1 ? std::atoi(argv[1]) : 10'000, slots = argc > 2 ? std::atoi(argv[2]) : 8;
  return farandole::Run(hosts, slots);
}
