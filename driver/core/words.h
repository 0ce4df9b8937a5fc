#pragma once

#include <string>
#include <vector>

#include "driver/core/ids.h"

namespace farandole {

// Pieces of the sentences that reasons and verdicts are made of.

// "rank 2", "ranks 0, 2", "ranks 0-3, 7". `ranks` is ascending and not empty.
std::string RanksInWords(const std::vector<int>& ranks);

// "SIGKILL"; "signal 99" for one without a name.
std::string SignalInWords(int signal);

// "ended with exit code 3", "was ended by signal 9 (SIGKILL)".
std::string EndInWords(const ExitStatus& status);

// An errno value: "No such file or directory".
std::string ErrorInWords(int error);

}  // namespace farandole
