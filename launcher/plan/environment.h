#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "driver/core/ids.h"

namespace farandole {

// What is told to every worker of a job in the same words.
struct JobEnvironment {
  // The launcher's own environment, NAME=VALUE.
  std::vector<std::string> inherited;
  // The network interface that all hosts share. Told only where the user has not chosen one; empty: not known, not
  // told.
  std::string interface;
};

// The environment of a worker: the inherited one, and over it what scripts read (cli/env_names.h): its host as in the
// host list, its place in the job, and how the original's runtime would be set up.
//
// Bytes pass as they are. A later entry of a name replaces an earlier one; an entry without a name or without '=' is
// left out, as no program could read it; what an agent of an outer job told the launcher is left out too. Sorted by
// name, so that the same job gives the same bytes.
std::vector<std::string> WorkerEnvironment(const JobEnvironment& job, const std::string& host,
                                           const Placement& placement);

}  // namespace farandole
