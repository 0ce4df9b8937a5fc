#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "launcher/cli/launch_request.h"
#include "launcher/cli/normalise.h"

namespace farandole {

// What a command line is read with; the functions make reading it a matter of its inputs alone.
struct CommandLineInputs {
  std::vector<std::string> arguments;  // argv; the base name of [0] is the command
  std::function<absl::optional<std::string>(const std::string& name)> environment;
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
};

// From the words of a command line (`called_as` is the command, for messages), the config file that they name and the
// caller's environment to a job. An option of the command line wins over the config file, that over a variable of the
// environment, and that over the default.
//
// Errors (a sentence for a person; nothing can be started): InvalidArgument: an option, a value, the program, hosts,
// slots; any: of reading a file.
absl::StatusOr<LaunchRequest> BuildRequest(NormalisedWords words, const CommandLineInputs& inputs,
                                           absl::string_view called_as);

}  // namespace farandole
