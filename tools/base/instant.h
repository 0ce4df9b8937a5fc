#pragma once

#include <compare>
#include <cstdint>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace farandole {

// A point on a monotonic time line whose origin means nothing: only differences do. Every decision is made with these;
// wall time exists only where a line is printed. Pure: `clock.h` reads the machine's.
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant FromNanos(int64_t nanos) { return Instant(nanos); }
  static constexpr Instant Infinite() { return Instant(INT64_MAX); }

  constexpr int64_t nanos() const { return nanos_; }
  constexpr bool is_infinite() const { return nanos_ == INT64_MAX; }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend Instant operator+(Instant at, absl::Duration d) {
    if (at.is_infinite() || d == absl::InfiniteDuration()) return Infinite();
    return Instant(at.nanos_ + absl::ToInt64Nanoseconds(d));
  }
  friend Instant operator-(Instant at, absl::Duration d) { return at + (-d); }
  friend absl::Duration operator-(Instant a, Instant b) {
    if (a.is_infinite()) return absl::InfiniteDuration();
    return absl::Nanoseconds(a.nanos_ - b.nanos_);
  }
  friend std::ostream& operator<<(std::ostream& out, Instant at) {
    return out << (at.is_infinite() ? "never" : absl::FormatDuration(absl::Nanoseconds(at.nanos_)));
  }

 private:
  explicit constexpr Instant(int64_t nanos) : nanos_(nanos) {}
  int64_t nanos_ = 0;
};

}  // namespace farandole
