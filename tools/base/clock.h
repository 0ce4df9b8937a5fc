#pragma once

#include <chrono>

#include "tools/base/instant.h"

namespace farandole {

// The machine's monotonic clock. Only shells call it; pure code is given an Instant.
inline Instant Now() {
  return Instant::FromNanos(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// The same point for std::condition_variable and other users of <chrono>.
inline std::chrono::steady_clock::time_point ToChrono(Instant at) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at.nanos()));
}

// What is left until `deadline` as poll(2) and epoll_wait(2) want it: milliseconds rounded up, 0 when passed, -1 for
// never.
inline int PollTimeoutMs(Instant deadline) {
  if (deadline.is_infinite()) return -1;
  const int64_t left = deadline.nanos() - Now().nanos();
  if (left <= 0) return 0;
  const int64_t ms = (left + 999'999) / 1'000'000;
  return ms > 3'600'000 ? 3'600'000 : static_cast<int>(ms);
}

}  // namespace farandole
