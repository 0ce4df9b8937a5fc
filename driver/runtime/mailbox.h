#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "driver/core/events.h"
#include "tools/base/mutex.h"

namespace farandole {

// Events from any thread for the loop, which takes them in batches. Shared: who was given a way to report may outlive
// the runtime, and finds the mailbox closed.
class Mailbox {
 public:
  // `wake` is called when the first event of a batch has come, from the thread that brought it; it must not block.
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Post(Event event) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (closed_) return;
    events_.push_back(std::move(event));
    if (events_.size() == 1) wake_();
  }

  // Everything that has come, in its order.
  std::vector<Event> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return std::exchange(events_, {});
  }

  // Drops what is there and what comes; `wake` is not called any more.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    closed_ = true;
    events_.clear();
  }

 private:
  const std::function<void()> wake_;
  Mutex mutex_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farandole
