#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "tools/base/clock.h"
#include "tools/base/instant.h"

namespace farandole {

// std::mutex with the annotations that clang's thread-safety analysis checks. absl::Mutex would be the natural choice;
// the distribution's build of it is not instrumented, so every use would be a false race under --config=tsan.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // Tells the analysis what it cannot see (inside the predicate of CondVar::Await, for example).
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* mutex_;
};

// Waits for a condition on data that `mutex` guards. Every wait has an end: the condition or the deadline.
class CondVar {
 public:
  void NotifyAll() { cv_.notify_all(); }
  void NotifyOne() { cv_.notify_one(); }

  // Returns the predicate's value when it holds or `deadline` has passed. The predicate runs with `mutex` held.
  template <typename Predicate>
  bool AwaitUntil(Mutex* mutex, Instant deadline, Predicate predicate) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    bool held = true;
    if (deadline.is_infinite()) {
      cv_.wait(lock, predicate);
    } else {
      held = cv_.wait_until(lock, ToChrono(deadline), predicate);
    }
    lock.release();
    return held;
  }

  template <typename Predicate>
  void Await(Mutex* mutex, Predicate predicate) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    AwaitUntil(mutex, Instant::Infinite(), predicate);
  }

 private:
  std::condition_variable cv_;
};

}  // namespace farandole
