#pragma once

#include <cstdint>

namespace farandole {

// A small generator (splitmix64, Steele, Lea, Flood 2014) for simulation, jitter and tests: the same seed gives the
// same numbers with every compiler and library, which neither <random>'s distributions nor absl::BitGen promise. Not
// for keys.
class Prng {
 public:
  explicit constexpr Prng(uint64_t seed) : state_(seed) {}

  constexpr uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound); bound > 0. The bias is below bound / 2^64.
  constexpr uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

  // True with probability numerator / denominator.
  constexpr bool Chance(uint64_t numerator, uint64_t denominator) { return Below(denominator) < numerator; }

  // Uniform in [0, 1).
  constexpr double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace farandole
