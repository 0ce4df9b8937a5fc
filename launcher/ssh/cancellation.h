#pragma once

#include "tools/base/unique_fd.h"

namespace farandole {

// Wakes one thread's blocking calls from any other thread: a flag that can be polled beside a socket. Whoever waits may
// clear it to go on, for example to end in order what was interrupted. It outlives every call that it was given to.
class Cancellation {
 public:
  Cancellation();

  void Cancel();
  void Clear();
  bool cancelled() const;
  // Readable while cancelled. Nobody else reads it.
  int fd() const { return event_.get(); }

 private:
  UniqueFd event_;
};

}  // namespace farandole
