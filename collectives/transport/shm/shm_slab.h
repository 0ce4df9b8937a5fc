#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "collectives/core/group.h"
#include "collectives/transport/shm/slab_layout.h"
#include "collectives/transport/shm/spsc_ring.h"
#include "collectives/transport/slab_source.h"
#include "tools/base/instant.h"

namespace farandole {

// The common memory of a group on one host, mapped by one member.
//
// How a rank waits: it has one bell, which everyone rings who did something that the rank may be waiting for. To save
// the system call, they ring only if the rank has said that it sleeps. Nothing is missed: the sleeper says so and then
// looks at the rings once more, the others change a ring and then look whether someone sleeps, and all four are
// sequentially consistent, so at least one of the two sees the other.
//
// Thread safety: Ring may be called from any thread, the rest belongs to the thread of the transport.
class ShmSlab {
 public:
  // Gets the memory from `source` under a name made of generation and group, maps it, and takes this rank's place in
  // it. kFailedPrecondition if the memory is that of another group, generation, size or build, or another process has
  // taken this rank's place: a sign that two jobs were mixed up.
  static absl::StatusOr<std::unique_ptr<ShmSlab>> Open(const GroupSpec& spec, SlabSource& source, Instant deadline);

  // Marks the place as left, unless this is a forked child of the process that opened it.
  ~ShmSlab();
  ShmSlab(const ShmSlab&) = delete;
  ShmSlab& operator=(const ShmSlab&) = delete;

  SpscRingWriter WriterTo(Rank to) const;
  SpscRingReader ReaderFrom(Rank from) const;

  // Whether `rank` has closed its transport in order. A process that just died never does.
  bool HasLeft(Rank rank) const { return PlaceOf(rank).left.load() != 0; }

  // Call after changing a ring: wakes `rank` if it sleeps.
  void Notify(Rank rank) const {
    if (PlaceOf(rank).sleeping.load() != 0) Ring(rank);
  }

  // Wakes `rank` whether it sleeps yet or not.
  void Ring(Rank rank) const;

  // Sleeps until this rank's bell rings or `deadline` passes, unless `look()`, called when a ring can no longer be
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
    std::atomic<uint64_t> magic, version, generation, group, size;
  };
  struct Place {
    std::atomic<uint32_t> bell;
    std::atomic<uint32_t> sleeping;
    std::atomic<uint32_t> left;
    std::atomic<uint64_t> incarnation;
  };
  static_assert(sizeof(Header) <= SlabLayout::kPageBytes && sizeof(Place) <= SlabLayout::kPlaceBytes);
  static_assert(sizeof(SpscRingControl) <= SlabLayout::kControlBytes);

  ShmSlab(std::byte* memory, const GroupSpec& spec);

  absl::Status Claim(const GroupSpec& spec);
  Place& PlaceOf(Rank rank) const { return *reinterpret_cast<Place*>(memory_ + layout_.PlaceAt(rank)); }
  SpscRingControl* ControlOf(Rank from, Rank to) const {
    return reinterpret_cast<SpscRingControl*>(memory_ + layout_.ControlAt(from, to));
  }
  static void AwaitBell(Place& place, uint32_t heard, Instant deadline);

  std::byte* const memory_;
  const SlabLayout layout_;
  const Rank rank_;
  const int size_;
  const int owner_pid_;
  bool claimed_ = false;
};

}  // namespace farandole
