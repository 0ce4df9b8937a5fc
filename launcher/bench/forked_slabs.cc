#include "launcher/bench/forked_slabs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {

absl::StatusOr<std::unique_ptr<ForkedSlabSource>> ForkedSlabSource::Create() {
  std::unique_ptr<ForkedSlabSource> source(new ForkedSlabSource());
  void* const memory = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "mmap");
  source->table_ = static_cast<Table*>(memory);
  pthread_mutexattr_t shared;
  ::pthread_mutexattr_init(&shared);
  ::pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  ::pthread_mutex_init(&source->table_->mutex, &shared);
  ::pthread_mutexattr_destroy(&shared);
  for (UniqueFd& file : source->files_) {
    file = UniqueFd(::memfd_create("farandole-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file) return ErrnoStatus(errno, "memfd_create");
  }
  return source;
}

ForkedSlabSource::~ForkedSlabSource() {
  if (table_ != nullptr) ::munmap(table_, sizeof(Table));
}

absl::StatusOr<int> ForkedSlabSource::FindLocked(absl::string_view name, int64_t bytes) {
  for (int i = 0; i < table_->used; ++i) {
    if (name != table_->entries[i].name) continue;
    if (table_->entries[i].bytes == bytes) return i;
    return absl::InvalidArgumentError(absl::StrCat("shared memory \"", name, "\" has ", table_->entries[i].bytes,
                                                   " bytes, ", bytes, " were asked for"));
  }
  if (table_->used == kFiles || name.size() > kNameMax) {
    return absl::ResourceExhaustedError(absl::StrCat("no shared memory is left for \"", name, "\""));
  }
  const int file = files_[table_->used].get();
  if (::ftruncate(file, bytes) != 0) return ErrnoStatus(errno, absl::StrCat("give shared memory ", bytes, " bytes"));
  if (::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ErrnoStatus(errno, "fix the size of shared memory");
  }
  Entry& entry = table_->entries[table_->used];
  std::memcpy(entry.name, name.data(), name.size());
  entry.name[name.size()] = 0;
  entry.bytes = bytes;
  return table_->used++;
}

absl::StatusOr<UniqueFd> ForkedSlabSource::Open(absl::string_view name, int64_t bytes, Instant deadline) {
  ::pthread_mutex_lock(&table_->mutex);
  const absl::StatusOr<int> index = FindLocked(name, bytes);
  ::pthread_mutex_unlock(&table_->mutex);
  RETURN_IF_ERROR(index.status());
  UniqueFd copy(::fcntl(files_[*index].get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return ErrnoStatus(errno, "duplicate a descriptor of shared memory");
  return copy;
}

}  // namespace farandole
