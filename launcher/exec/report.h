#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "driver/core/actions.h"

namespace farandole {

struct ReportInputs {
  Verdict verdict;
  int np = 1;
  // When the job began to fail, for people.
  absl::optional<absl::Time> failed_at;
  absl::TimeZone zone;
  bool colour = false;  // stderr is a terminal
  std::function<std::vector<std::string>(const WorkerId&)> last_error_lines;
};

// The last lines of a job on stderr, for a person: who failed first, where, how and when, with its own last words; who
// failed after it; what happened to the rest. Empty when all is well. Ends without '\n'. Pure.
std::string FinalReport(const ReportInputs& inputs);

}  // namespace farandole
