#include "collectives/transport/shm/common_memory.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr uint64_t kMagic = 0x324d454d4c444e46;  // "FNDLMEM2"

// The memory comes zeroed: the first member writes a word, the others find what they would have written.
bool Agree(std::atomic<uint64_t>& word, uint64_t value) {
  uint64_t found = 0;
  return word.compare_exchange_strong(found, value) || found == value;
}

// Not the private kind: the sleepers are in other processes.
long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* until) {
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, until, nullptr,
                   FUTEX_BITSET_MATCH_ANY);
}

// FNV-1a: a number for a word.
uint64_t HashOf(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommonMemory>> CommonMemory::Open(const GroupSpec& spec, SlabSource& source,
                                                                 const Use& use, int64_t payload_bytes,
                                                                 Instant deadline) {
  const std::string name = absl::StrCat("generation ", spec.generation.value(), " group ", spec.group, " ", use.name);
  const int64_t bytes = PayloadAt(spec.size()) + payload_bytes;
  ASSIGN_OR_RETURN(const UniqueFd fd, source.Open(name, bytes, deadline), std::move(_) << "shared memory for " << name);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("size of the shared memory for ", name));
  if (info.st_size < bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the shared memory for ", name, " has ", info.st_size, " bytes, not ", bytes));
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return ErrnoStatus(errno, absl::StrCat("map ", bytes, " bytes of shared memory for ", name));
  }
  std::unique_ptr<CommonMemory> mapped(new CommonMemory(static_cast<std::byte*>(memory), bytes, spec));
  RETURN_IF_ERROR(mapped->Claim(spec, use)) << "shared memory for " << name;
  return mapped;
}

CommonMemory::CommonMemory(std::byte* memory, int64_t bytes, const GroupSpec& spec)
    : memory_(memory),
      bytes_(bytes),
      payload_at_(PayloadAt(spec.size())),
      rank_(spec.rank),
      size_(spec.size()),
      owner_pid_(::getpid()) {}

CommonMemory::~CommonMemory() {
  if (claimed_ && ::getpid() == owner_pid_) Leave();
  ::munmap(memory_, bytes_);
}

void CommonMemory::Leave() const {
  PlaceOf(rank_).left.store(1);
  for (Rank rank = 0; rank < size_; ++rank) Notify(rank);
}

absl::Status CommonMemory::Claim(const GroupSpec& spec, const Use& use) {
  Header& header = *reinterpret_cast<Header*>(memory_);
  const bool same = Agree(header.magic, kMagic) && Agree(header.use, HashOf(use.name)) &&
                    Agree(header.version, use.version) && Agree(header.generation, spec.generation.value()) &&
                    Agree(header.group, uint64_t{spec.group} + 1) && Agree(header.size, spec.size());
  if (!same) {
    return absl::FailedPreconditionError(
        "it belongs to another group or was made by another version; are all workers of this host the same build?");
  }
  if (!Agree(PlaceOf(rank_).incarnation, spec.members[rank_].incarnation.value())) {
    return absl::FailedPreconditionError(absl::StrCat("another process is already ", Describe(spec, rank_)));
  }
  claimed_ = true;
  return absl::OkStatus();
}

void CommonMemory::Ring(Rank rank) const {
  Place& place = PlaceOf(rank);
  place.bell.fetch_add(1);
  Futex(place.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void CommonMemory::AwaitBell(Place& place, uint32_t heard, Instant deadline) {
  // The clock of FUTEX_WAIT_BITSET is the one of Instant; its time is absolute. Any return is fine: the caller looks
  // again.
  const timespec until{static_cast<time_t>(deadline.nanos() / 1'000'000'000),
                       static_cast<long>(deadline.nanos() % 1'000'000'000)};
  Futex(place.bell, FUTEX_WAIT_BITSET, heard, deadline.is_infinite() ? nullptr : &until);
}

}  // namespace farandole
