#pragma once

#include <sched.h>

#include "absl/time/time.h"
#include "tools/base/clock.h"
#include "tools/base/instant.h"

namespace farandole {

// How a rank waits for another one on the same host before it goes to sleep. Thread-compatible.
class Spin {
 public:
  // For a group of `size` members on this host: with more of them than processors, spinning takes the time from whom
  // one waits for; giving the processor away does not.
  explicit Spin(int size) : crowded_(size > Processors()) {}

  // About what a sleep and a wake-up cost, so that waiting costs at most twice the best choice.
  static constexpr absl::Duration kPatience = absl::Microseconds(20);

  // Looks again and again, for a while; whether look() returned true.
  template <typename Look>
  bool Until(Look look, absl::Duration patience = kPatience) const {
    if (crowded_) {
      for (int i = 0; i < kYields; ++i) {
        if (look()) return true;
        ::sched_yield();
      }
      return look();
    }
    for (int i = 0; i < kLooksPerLookAtTheClock; ++i) {  // most waits are so short that the clock is not worth it
      if (look()) return true;
      Pause();
    }
    const Instant end = Now() + patience;
    do {
      for (int i = 0; i < kLooksPerLookAtTheClock; ++i) {
        if (look()) return true;
        Pause();
      }
    } while (Now() < end);
    return false;
  }

  bool crowded() const { return crowded_; }

 private:
  static constexpr int kYields = 4;
  static constexpr int kLooksPerLookAtTheClock = 32;

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  static int Processors() {
    cpu_set_t set;
    return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }

  const bool crowded_;
};

}  // namespace farandole
