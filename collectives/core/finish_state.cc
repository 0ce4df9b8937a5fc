#include "collectives/core/finish_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/check.h"

namespace farandole {

absl::Status FinishState::Finish(absl::Status reason) {
  CHECK(!reason.ok());
  MutexLock lock(&mutex_);
  if (reason_.ok()) {
    reason_ = std::move(reason);
    finished_.store(true, std::memory_order_release);
  }
  return reason_;
}

absl::Status FinishState::reason() const {
  if (!finished()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  return reason_;
}

absl::Status FinishState::CheckStart() const {
  const absl::Status why = reason();
  if (why.ok() || absl::IsCancelled(why)) return why;
  return absl::FailedPreconditionError(absl::StrCat("the group was finished by an earlier error: ", why.message()));
}

}  // namespace farandole
