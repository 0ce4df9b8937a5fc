#include "worker/agent/worker_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {

absl::Status WorkerInput::Append(absl::string_view piece) {
  if (status_.ok()) status_ = Write(piece);
  return status_;
}

absl::Status WorkerInput::Write(absl::string_view piece) {
  if (sealed_) return absl::FailedPreconditionError("the workers' input went on after a worker had been started");
  if (piece.size() > max_bytes_ - size_) {
    return absl::ResourceExhaustedError(absl::StrCat("the workers' input has more than ", max_bytes_, " bytes"));
  }
  RETURN_IF_ERROR(Make());
  while (!piece.empty()) {
    const ssize_t written = ::write(memory_.get(), piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return ErrnoStatus(errno, absl::StrCat("keep the workers' input in memory after ", size_, " bytes"));
    piece.remove_prefix(static_cast<size_t>(written));
    size_ += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status WorkerInput::Make() {
  if (memory_) return absl::OkStatus();
  memory_.reset(::memfd_create("farandole-input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  return memory_ ? absl::OkStatus() : ErrnoStatus(errno, "make memory for the workers' input");
}

absl::StatusOr<UniqueFd> WorkerInput::Open() {
  RETURN_IF_ERROR(status_);
  RETURN_IF_ERROR(Make());
  // A worker could open its own for writing too.
  if (!sealed_ && ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return ErrnoStatus(errno, "seal the workers' input");
  }
  sealed_ = true;
  // Not dup(2): that would share the position.
  UniqueFd own(::open(absl::StrCat("/proc/self/fd/", memory_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!own) return ErrnoStatus(errno, "open the workers' input by /proc/self/fd");
  return own;
}

}  // namespace farandole
