#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <utility>

namespace farandole {

// An integer that cannot be mistaken for another kind of integer.
//
//   using Rank = StrongId<struct RankTag, int32_t>;
template <typename Tag, typename T>
class StrongId {
 public:
  using value_type = T;
  constexpr StrongId() = default;
  explicit constexpr StrongId(T value) : value_(value) {}
  constexpr T value() const { return value_; }

  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << +id.value_; }

 private:
  T value_{};
};

}  // namespace farandole
