#pragma once

#include "absl/time/time.h"
#include "tools/base/instant.h"

namespace farandole {

// How far a peer's clock is ahead of ours, from round trips: we send at `sent`, the peer answers with its own time,
// the answer is here at `received`. The peer read its clock somewhere in between, so the middle is wrong by half the
// round trip at most; the shortest round trip bounds it best and is the one that counts. Pure.
class ClockOffset {
 public:
  // A round trip whose end is before its begin is ignored.
  void Add(Instant sent, Instant peer, Instant received) {
    const absl::Duration round_trip = received - sent;
    if (round_trip < absl::ZeroDuration() || round_trip >= shortest_) return;
    shortest_ = round_trip;
    offset_ = peer - (sent + round_trip / 2);
  }

  // Peer's time = our time + offset(), within error(). Infinite error: nothing has been measured.
  absl::Duration offset() const { return offset_; }
  absl::Duration error() const { return shortest_ / 2; }

 private:
  absl::Duration shortest_ = absl::InfiniteDuration();
  absl::Duration offset_ = absl::ZeroDuration();
};

}  // namespace farandole
