#pragma once

#include <cstdint>
#include <string>

namespace farandole {

// Tells whether a SIGKILL was the kernel's, for want of memory: by its count of such kills, which it writes before the
// process ends. The count is that of this process's control group (version 2), whose limit is the usual cause, or else
// that of the whole machine. A guess all the same: another process of the group may be the one that was counted. To be
// sure would take the kernel's log, which is for root.
class OomWatch {
 public:
  // `root` is in front of /proc and /sys, for tests.
  explicit OomWatch(const std::string& root = "");

  // A process has been killed, and not by us: whether the kernel has counted one more than it had when this was made
  // and than was claimed before.
  bool Claim();

 private:
  std::string path_;  // the file with the line "oom_kill N"; empty: there is none
  int64_t seen_ = 0;
};

}  // namespace farandole
