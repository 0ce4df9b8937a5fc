#include "collectives/transport/shm/local_slab_source.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Nameless memory whose size is fixed for good, so that nobody who maps it can be hurt by somebody who shrinks it.
absl::StatusOr<UniqueFd> MakeMemory(int64_t bytes) {
  UniqueFd fd(::memfd_create("farandole-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return ErrnoStatus(errno, "memfd_create");
  if (::ftruncate(fd.get(), bytes) != 0)
    return ErrnoStatus(errno, absl::StrCat("give shared memory ", bytes, " bytes"));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ErrnoStatus(errno, "fix the size of shared memory");
  }
  return fd;
}

}  // namespace

absl::StatusOr<UniqueFd> LocalSlabSource::Open(absl::string_view name, int64_t bytes, Instant deadline) {
  MutexLock lock(&mutex_);
  auto found = slabs_.find(std::string(name));
  if (found == slabs_.end()) {
    ASSIGN_OR_RETURN(UniqueFd fd, MakeMemory(bytes));
    found = slabs_.emplace(std::string(name), Slab{std::move(fd), bytes}).first;
  }
  if (found->second.bytes != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory \"", name, "\" has ", found->second.bytes, " bytes, ", bytes, " were asked for"));
  }
  UniqueFd copy(::fcntl(found->second.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return ErrnoStatus(errno, "duplicate a descriptor of shared memory");
  return copy;
}

}  // namespace farandole
