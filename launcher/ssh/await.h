#pragma once

#include <poll.h>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "launcher/ssh/cancellation.h"
#include "tools/base/instant.h"

namespace farandole {

// Waits until one of `ready` has an event (in its revents).
// Errors: DeadlineExceeded; Cancelled: it comes before any event.
absl::Status AwaitAny(absl::Span<pollfd> ready, Instant deadline, const Cancellation& cancellation);

// The same for one descriptor.
absl::Status AwaitFd(int fd, short events, Instant deadline, const Cancellation& cancellation);

}  // namespace farandole
