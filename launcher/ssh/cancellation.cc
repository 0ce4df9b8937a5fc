#include "launcher/ssh/cancellation.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "tools/base/check.h"

namespace farandole {

Cancellation::Cancellation() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(static_cast<bool>(event_)) << "eventfd: " << std::strerror(errno);
}

void Cancellation::Cancel() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void Cancellation::Clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof count);
}

bool Cancellation::cancelled() const {
  pollfd event{event_.get(), POLLIN, 0};
  return ::poll(&event, 1, 0) > 0;
}

}  // namespace farandole
