#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// What every worker of the job reads from standard input: bytes in memory, there once however many workers read them.
// First all is appended, then it is opened, once for each worker; what a worker does with its own changes nothing for
// the others.
//
// Thread-compatible.
class WorkerInput {
 public:
  // Far more than a function with its arguments has; below what would hurt a host.
  static constexpr size_t kMaxBytes = size_t{2} << 30;

  explicit WorkerInput(size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // Errors: of the system; ResourceExhausted: more than `max_bytes`; FailedPrecondition: it was opened. What comes
  // after an error gets the same one, and so does Open.
  absl::Status Append(absl::string_view piece);

  // A descriptor of its own for one worker, at the first byte, for reading. Errors: of the system; an earlier one of
  // Append.
  absl::StatusOr<UniqueFd> Open();

 private:
  absl::Status Make();
  absl::Status Write(absl::string_view piece);

  const size_t max_bytes_;
  UniqueFd memory_;  // a memfd, from the first use on
  size_t size_ = 0;
  bool sealed_ = false;
  absl::Status status_;
};

}  // namespace farandole
