#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "collectives/engine/engine.h"
#include "tools/base/mutex.h"

namespace farandole {

// The engines of a process that are not quite gone: a thread that waits for an operation, or begins one, may hold an
// engine a moment longer than the session does, and what engines are made of must outlive them.
//
// Thread-safe.
class EngineCount : public std::enable_shared_from_this<EngineCount> {
 public:
  // `engine`, counted until it has been destroyed.
  std::shared_ptr<Engine> Count(std::unique_ptr<Engine> engine) {
    {
      MutexLock lock(&mutex_);
      ++count_;
    }
    return std::shared_ptr<Engine>(engine.release(), [self = shared_from_this()](Engine* gone) {
      delete gone;
      MutexLock lock(&self->mutex_);
      --self->count_;
      self->changed_.NotifyAll();
    });
  }

  // Returns when there is none. For when all have been shut down, so that nobody holds one for long.
  void AwaitNone() {
    MutexLock lock(&mutex_);
    changed_.Await(&mutex_, [this] {
      mutex_.AssertHeld();
      return count_ == 0;
    });
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace farandole
