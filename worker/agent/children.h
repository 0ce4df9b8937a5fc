#pragma once

#include <sys/types.h>

#include <vector>

namespace farandole {

// The processes whose parent this process is now, those that have ended included.
std::vector<pid_t> ChildrenOfThisProcess();

}  // namespace farandole
