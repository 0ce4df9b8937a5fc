#pragma once

#include <sys/types.h>

#include <functional>

namespace farandole {

// The children that this process has started for itself, as opposed to those that became its children because it is the
// subreaper of agents. Whoever looks for the latter leaves these alone. Thread-safe.
class OwnChildren {
 public:
  // Calls `fork`, which returns a child's number or -1; no child is ever seen that is neither counted nor not yet
  // there.
  static pid_t Start(const std::function<pid_t()>& fork);
  // It has been collected.
  static void Collected(pid_t pid);
  static bool Has(pid_t pid);
};

}  // namespace farandole
