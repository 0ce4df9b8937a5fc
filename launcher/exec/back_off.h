#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "tools/base/prng.h"

namespace farandole {

// How long to wait before the next of many attempts: from 0.2 s, twice as long each time, 5 s at most; a random half of
// it, so that hosts that failed together do not come back together. Pure.
class BackOff {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(200);
  static constexpr absl::Duration kMost = absl::Seconds(5);

  explicit BackOff(uint64_t seed) : random_(seed) {}

  absl::Duration Next() {
    const absl::Duration whole = next_;
    next_ = std::min(next_ * 2, kMost);
    return whole / 2 + whole / 2 * random_.Unit();
  }

 private:
  Prng random_;
  absl::Duration next_ = kFirst;
};

}  // namespace farandole
