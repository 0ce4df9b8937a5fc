#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "tools/base/check.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// A descriptor that poll(2) finds readable once Set() was called, until Clear(). Set is safe from any thread and does
// not block.
class WakeFd {
 public:
  WakeFd() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { CHECK(fd_) << "eventfd: too many open files?"; }

  int get() const { return fd_.get(); }

  void Set() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);  // full: it is set already
  }

  // Whether it was set.
  bool Clear() {
    uint64_t count = 0;
    return ::read(fd_.get(), &count, sizeof count) == sizeof count;
  }

 private:
  UniqueFd fd_;
};

}  // namespace farandole
