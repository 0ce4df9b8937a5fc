#pragma once

#include <string>

#include "absl/types/span.h"

namespace farandole {

// `farandole bench ARGUMENTS`: measures the collectives between processes that it forks, and prints. Returns the exit
// code: 0, 1 when a measurement failed, 2 for a command line that means nothing. The process has no threads yet.
int RunBench(absl::Span<const std::string> arguments);

}  // namespace farandole
