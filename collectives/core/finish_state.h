#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/base/mutex.h"

namespace farandole {

// Why something that is used until its first error is finished: the first reason stays. Shared by what runs and what
// aborts it.
//
// Thread-safe.
class FinishState {
 public:
  // Records `reason` (not OK) unless there is one already. Returns the reason that holds: what the call that failed
  // gives back.
  absl::Status Finish(absl::Status reason);

  // Finish(kCancelled: `reason`).
  void Abort(absl::string_view reason) { Finish(absl::CancelledError(reason)).IgnoreError(); }

  // Costs one load.
  bool finished() const { return finished_.load(std::memory_order_acquire); }

  // The recorded reason, OK while there is none: for a call that was running when it came.
  absl::Status reason() const;

  // For a call that begins: OK, or kCancelled after an Abort, or kFailedPrecondition with the reason's text.
  absl::Status CheckStart() const;

 private:
  std::atomic<bool> finished_{false};
  mutable Mutex mutex_;
  absl::Status reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
