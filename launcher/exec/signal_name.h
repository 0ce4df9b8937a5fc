#pragma once

#include <string>

namespace farandole {

// "SIGKILL", or "signal 64" for one without a name.
std::string SignalName(int signal);

}  // namespace farandole
