#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "launcher/cli/hosts.h"

namespace farandole {

// A job, as a person asked for it; checked as far as it can be without looking at the machine.
struct LaunchRequest {
  std::string called_as;  // "horovodrun" or "farandole run", for messages
  int np = 1;
  std::vector<HostSpec> hosts;       // at least one, with at least `np` slots together
  std::vector<std::string> command;  // the program and its arguments, as they are; the program is not empty
  bool verbose = false;
  bool timestamps = false;
  std::string output_directory;                  // empty: none
  absl::optional<absl::Duration> start_timeout;  // unset: the driver's default
};

// Show `text` on stdout and end with 0.
struct PrintText {
  std::string text;
};

// Show the table of what this build can do.
struct CheckBuildRequest {
  bool verbose = false;
};

// Nothing can be started. `message` is for stderr, whole, with the usage line after it.
struct UsageError {
  static constexpr int kExitCode = 2;
  std::string message;
};

using CommandLine = std::variant<LaunchRequest, PrintText, CheckBuildRequest, UsageError>;

// What a command line is read with; the functions make reading it a matter of its inputs alone.
struct CommandLineInputs {
  std::vector<std::string> arguments;  // argv; the base name of [0] is the command
  std::function<absl::optional<std::string>(const std::string& name)> environment;
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
};

// Reads the command line of either command: `horovodrun OPTIONS PROGRAM...`, which is what a file of that name is, or
// `farandole run OPTIONS PROGRAM...`, `farandole --version`, `farandole --help`.
CommandLine ParseCommandLine(const CommandLineInputs& inputs);

}  // namespace farandole
