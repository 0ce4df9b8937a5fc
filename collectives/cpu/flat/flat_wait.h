#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/core/finish_state.h"
#include "collectives/core/group.h"
#include "collectives/cpu/flat/flat_slab.h"
#include "collectives/transport/shm/spin.h"
#include "tools/base/instant.h"

namespace farandole {

// How a rank of a flat communicator waits for others: it spins, then sleeps; and finds out why they do not come.
class FlatWait {
 public:
  // All outlive it.
  FlatWait(const GroupSpec& spec, const FlatSlab& slab, FinishState& finish)
      : spec_(spec), slab_(slab), finish_(finish), spin_(spec.size()) {}

  // This rank begins its collective `number`; `what` is the same on all ranks if they call the same one.
  void Begin(uint64_t number, uint64_t what) {
    number_ = number;
    what_ = what;
    FlatSlab::Doing& doing = slab_.doing(spec_.rank);
    doing.what.store(what, std::memory_order_relaxed);
    doing.number.store(number, std::memory_order_release);
  }

  // Of the present collective.
  uint64_t what() const { return what_; }

  // kInternal: `rank` has called another one.
  absl::Status DifferentCollectives(Rank rank) const;

  // Waits until ready(), which is cheap and only looks. Errors as those of Communicator, but they finish nothing.
  template <typename Ready>
  absl::Status Until(Ready ready, Instant deadline) {
    if (spin_.Until([&] { return ready() || finish_.finished(); }))
      return ready() ? absl::OkStatus() : finish_.reason();
    return Asleep(ready, deadline);
  }

  // Whether ready() within `patience`, without sleeping.
  template <typename Ready>
  bool Within(Ready ready, absl::Duration patience) const {
    return spin_.Until(ready, patience);
  }

  // The others may go on.
  void Notify() const {
    for (Rank rank = 0; rank < spec_.size(); ++rank) {
      if (rank != spec_.rank) slab_.members().Notify(rank);
    }
  }

 private:
  template <typename Ready>
  absl::Status Asleep(Ready ready, Instant deadline) {
    while (true) {
      absl::Status why;
      bool is_ready = false;
      slab_.members().Sleep(deadline, [&] {
        // What a peer did before it left counts: so first whether one has left, then whether it is there.
        why = Obstacle();
        is_ready = ready();
        return is_ready || !why.ok() || finish_.finished();
      });
      if (is_ready || ready()) return absl::OkStatus();
      if (finish_.finished()) return finish_.reason();
      if (!why.ok()) return why;
      if (Passed(deadline)) return ready() ? absl::OkStatus() : TooLate();
    }
  }

  // Why some rank will not come: it does something else, or has left.
  absl::Status Obstacle() const;
  static bool Passed(Instant deadline);
  absl::Status TooLate() const;

  const GroupSpec& spec_;
  const FlatSlab& slab_;
  FinishState& finish_;
  const Spin spin_;
  uint64_t number_ = 0;
  uint64_t what_ = 0;
};

}  // namespace farandole
