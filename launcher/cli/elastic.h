#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "launcher/cli/launch_request.h"
#include "launcher/cli/settings.h"

namespace farandole {

// Reads the options for jobs whose size may change. --min-np or --host-discovery-script make a job elastic; the others
// mean nothing without one of these, and get a line in `*notes` that says so.
//
// Errors (InvalidArgument): a number that is none or out of its range; sizes that contradict each other or `np`.
absl::StatusOr<absl::optional<ElasticRequest>> ParseElastic(const Settings& settings, int np,
                                                            std::vector<std::string>* notes);

}  // namespace farandole
