#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/core/group.h"
#include "collectives/transport/slab_source.h"
#include "tools/base/instant.h"

namespace farandole {

// Memory that the members of a group on one host share, mapped by one of them: who is there, how they wake each other,
// and behind that the bytes of whoever uses it.
//
// How a rank waits: it has one bell, which everyone rings who did something that the rank may be waiting for. To save
// the system call, they ring only if the rank has said that it sleeps. Nothing is missed: the sleeper says so and then
// looks once more, the others change something and then look whether someone sleeps, and all four are sequentially
// consistent, so at least one of the two sees the other.
//
// Thread safety: Sleep belongs to one thread at a time, the rest may be called from any.
class CommonMemory {
 public:
  // What the memory is used for: part of its name and of its header, so that two builds that differ refuse each other.
  struct Use {
    absl::string_view name;
    uint64_t version;  // changes with everything that is laid out in the payload
  };

  // Gets the memory from `source` under a name made of generation, group and use, maps it, and takes this rank's place
  // in it. kFailedPrecondition if the memory is that of another group, generation, size or build, or another process
  // has taken this rank's place: a sign that two jobs were mixed up.
  static absl::StatusOr<std::unique_ptr<CommonMemory>> Open(const GroupSpec& spec, SlabSource& source, const Use& use,
                                                            int64_t payload_bytes, Instant deadline);

  // Marks the place as left, unless this is a forked child of the process that opened it.
  ~CommonMemory();
  CommonMemory(const CommonMemory&) = delete;
  CommonMemory& operator=(const CommonMemory&) = delete;

  // Zero at first; at the beginning of a page.
  std::byte* payload() const { return memory_ + payload_at_; }

  // This rank ends: from now on HasLeft says so. The destructor does it as well.
  void Leave() const;

  // Whether `rank` has ended in order. A process that just died never does.
  bool HasLeft(Rank rank) const { return PlaceOf(rank).left.load() != 0; }

  // Call after a change that `rank` may wait for: wakes it if it sleeps.
  void Notify(Rank rank) const {
    if (PlaceOf(rank).sleeping.load() != 0) Ring(rank);
  }

  // While a thread is in Sleep: whether Notify wakes it.
  void SetSleeping(bool sleeping) const { PlaceOf(rank_).sleeping.store(sleeping ? 1 : 0); }

  // Wakes `rank` whether it sleeps yet or not.
  void Ring(Rank rank) const;

  // Sleeps until this rank's bell rings or `deadline` passes, unless `look()`, called when a change can no longer be
  // missed, returns true: there is something to do.
  template <typename Look>
  void Sleep(Instant deadline, Look look) const {
    Place& place = PlaceOf(rank_);
    place.sleeping.store(1);
    const uint32_t heard = place.bell.load();
    if (!look()) AwaitBell(place, heard, deadline);
    place.sleeping.store(0);
  }

 private:
  struct Header {
    std::atomic<uint64_t> magic, use, version, generation, group, size;
  };
  struct Place {
    std::atomic<uint32_t> bell;
    std::atomic<uint32_t> sleeping;
    std::atomic<uint32_t> left;
    std::atomic<uint64_t> incarnation;
  };
  static constexpr int64_t kPageBytes = 4096;
  static constexpr int64_t kPlaceBytes = 128;  // two cache lines: neighbouring lines are fetched together
  static_assert(sizeof(Header) <= kPageBytes && sizeof(Place) <= kPlaceBytes);

  static constexpr int64_t PayloadAt(int size) {
    return kPageBytes + (size * kPlaceBytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }

  CommonMemory(std::byte* memory, int64_t bytes, const GroupSpec& spec);
  absl::Status Claim(const GroupSpec& spec, const Use& use);
  Place& PlaceOf(Rank rank) const {
    return *reinterpret_cast<Place*>(memory_ + kPageBytes + int64_t{rank} * kPlaceBytes);
  }
  static void AwaitBell(Place& place, uint32_t heard, Instant deadline);

  std::byte* const memory_;
  const int64_t bytes_;
  const int64_t payload_at_;
  const Rank rank_;
  const int size_;
  const int owner_pid_;
  bool claimed_ = false;
};

}  // namespace farandole
