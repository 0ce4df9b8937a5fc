#pragma once

#include <sys/types.h>

#include <vector>

#include "absl/status/statusor.h"
#include "driver/core/ids.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// The children of the calling process, also those that have ended and wait to be collected. Read from /proc: a list
// that the kernel keeps for it may be cut short while processes come and go.
std::vector<pid_t> ChildrenOfThisProcess();

// A descriptor of a child that has not been collected yet, so that its number cannot mean another process. Becomes
// readable when the child ends. Errors: Unavailable.
absl::StatusOr<UniqueFd> OpenProcess(pid_t pid);

// Sends `signal`; nothing happens if the process has ended.
void SignalProcess(const UniqueFd& process, int signal);

// Collects an ended child. Errors: FailedPrecondition: it has not ended.
absl::StatusOr<ExitStatus> CollectProcess(const UniqueFd& process);

// From now on orphaned descendants become children of this process.
absl::Status BecomeSubreaper();

}  // namespace farandole
