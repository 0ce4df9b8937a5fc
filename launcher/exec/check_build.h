#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace farandole {

// What `python3` can import: the frameworks, and our package for each.
struct PythonFindings {
  bool tensorflow = false, torch = false, mxnet = false;
};

// Asks the Python that a user's `python3` is, without importing anything big; ends it after `patience`.
// Errors: NotFound: there is no python3; DeadlineExceeded; Unknown: it failed.
absl::StatusOr<PythonFindings> AskPython(absl::Duration patience);

// The table of the original, with our own part after it. `python` as a status: no framework is marked, and with
// `verbose` the reason is told.
std::string CheckBuildText(const std::string& version, const absl::StatusOr<PythonFindings>& python, bool verbose);

}  // namespace farandole
