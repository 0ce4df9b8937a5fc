#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cli/settings.h"

namespace farandole {

// What the options that tune the workers' engine come to.
struct TuningResult {
  // NAME=VALUE, each name once, as scripts and the original's engine read them.
  std::vector<std::string> variables;
  // A line for each option that does something else than its name says, or nothing.
  std::vector<std::string> notes;
};

// Translates the settings. Errors (InvalidArgument): a value that is none, with where it was given.
absl::StatusOr<TuningResult> TranslateTunables(const Settings& settings);

}  // namespace farandole
