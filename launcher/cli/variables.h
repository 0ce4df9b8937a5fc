#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "launcher/cli/settings.h"

namespace farandole {

// The values of --env: NAME=VALUE as they are, and NAME with the value that `environment` has. The last of a name
// counts.
//
// Errors (InvalidArgument, never with a value): not a name; NAME alone where there is no such variable; a variable that
// the launcher sets for each worker.
absl::StatusOr<std::vector<std::string>> ParseGivenVariables(
    absl::Span<const Setting> settings,
    const std::function<absl::optional<std::string>(const std::string& name)>& environment);

// The values of --env-deny. Errors (InvalidArgument): a pattern with '=' or '['.
absl::StatusOr<std::vector<std::string>> ParseDeniedVariables(absl::Span<const Setting> settings);

// Whether `text` as a whole fits a pattern of the shell's: '*' for any bytes, '?' for one, all else for itself. Takes
// time in proportion to the product of their lengths at most.
bool MatchesPattern(absl::string_view pattern, absl::string_view text);

}  // namespace farandole
