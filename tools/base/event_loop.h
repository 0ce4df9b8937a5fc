#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// One thread that waits for descriptors, timers and posted work, and runs their callbacks one after the other: whatever
// it owns needs no lock. A thin shell over epoll(7); libuv and Asio lost because processes are watched by pidfd and
// started by our own code, which is most of what they would be used for.
//
// Threads: Run() and every method but Post() and Stop() belong to the loop's thread (before Run(), to whoever made it).
// Post() and Stop() may be called from any thread, also from a callback; work posted after Run() has returned is
// dropped. A callback may remove any watch or timer, its own included; removing one that is gone does nothing.
class EventLoop {
 public:
  using Callback = std::function<void()>;
  using FdCallback = std::function<void(uint32_t events)>;  // EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR
  using TimerId = uint64_t;                                 // never 0

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `callback` whenever one of `events` holds for `fd` (level-triggered). Watching a watched fd replaces both.
  // The caller keeps `fd` open until Unwatch.
  void Watch(int fd, uint32_t events, FdCallback callback);
  void Unwatch(int fd);

  // Calls `callback` once at `at` or soon after.
  TimerId At(Instant at, Callback callback);
  void Cancel(TimerId timer);

  // Runs `work` on the loop, after everything posted before it.
  void Post(Callback work) ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs until Stop(). What was posted before Stop() has run when Run() returns.
  void Run();
  void Stop();

 private:
  struct Watched {
    uint32_t events = 0;
    std::shared_ptr<FdCallback> callback;  // shared: a callback may unwatch itself while it runs
  };

  void RunPosted() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunTimers();
  Instant NextTimer() const;

  UniqueFd epoll_;
  UniqueFd wake_;
  std::map<int, Watched> watches_;
  std::map<std::pair<Instant, TimerId>, Callback> timers_;
  std::map<TimerId, Instant> timer_times_;
  TimerId next_timer_ = 1;

  Mutex mutex_;
  std::vector<Callback> posted_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farandole
