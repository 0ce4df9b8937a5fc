#include "launcher/ssh/await.h"

#include <cerrno>
#include <vector>

#include "tools/base/clock.h"
#include "tools/base/errno_status.h"

namespace farandole {

absl::Status AwaitAny(absl::Span<pollfd> ready, Instant deadline, const Cancellation& cancellation) {
  std::vector<pollfd> all(ready.begin(), ready.end());
  all.push_back({cancellation.fd(), POLLIN, 0});
  while (true) {
    const int count = ::poll(all.data(), all.size(), PollTimeoutMs(deadline));
    if (count < 0 && errno != EINTR) return absl::InternalError(ErrnoStatus(errno, "poll").message());
    if (count > 0) break;
    if (count == 0 && Now() >= deadline) return absl::DeadlineExceededError("no answer in time");
  }
  if (all.back().revents != 0) return absl::CancelledError("cancelled");
  for (size_t i = 0; i < ready.size(); ++i) ready[i].revents = all[i].revents;
  return absl::OkStatus();
}

absl::Status AwaitFd(int fd, short events, Instant deadline, const Cancellation& cancellation) {
  pollfd one{fd, events, 0};
  return AwaitAny(absl::MakeSpan(&one, 1), deadline, cancellation);
}

}  // namespace farandole
