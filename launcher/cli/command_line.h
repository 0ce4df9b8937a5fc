#pragma once

#include <string>
#include <variant>

#include "launcher/cli/launch_request.h"
#include "launcher/cli/request.h"

namespace farandole {

// Show `text` on stdout and end with 0.
struct PrintText {
  std::string text;
};

// Show the table of what this build can do.
struct CheckBuildRequest {
  bool verbose = false;
};

// `farandole bench`: measure; what, is for launcher/bench to read.
struct BenchCommand {
  int words = 2;  // of the command line; the arguments come after them
};

// Nothing can be started. `message` is for stderr, whole, with the usage line after it.
struct UsageError {
  static constexpr int kExitCode = 2;
  std::string message;
};

using CommandLine = std::variant<LaunchRequest, PrintText, CheckBuildRequest, BenchCommand, UsageError>;

// Reads the command line of either command: `horovodrun OPTIONS PROGRAM...`, which is what a file of that name is, or
// `farandole run OPTIONS PROGRAM...`, `farandole bench ...`, `farandole --version`, `farandole --help`.
CommandLine ParseCommandLine(const CommandLineInputs& inputs);

}  // namespace farandole
