#include "launcher/exec/back_off.h"

#include "gtest/gtest.h"

namespace farandole {
namespace {

TEST(BackOff, GrowsToItsMostAndKeepsAtLeastHalf) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    BackOff back_off(seed);
    absl::Duration whole = BackOff::kFirst;
    for (int i = 0; i < 12; ++i) {
      const absl::Duration pause = back_off.Next();
      EXPECT_GE(pause, whole / 2);
      EXPECT_LE(pause, whole);
      whole = std::min(whole * 2, BackOff::kMost);
    }
  }
}

TEST(BackOff, DiffersBetweenHosts) { EXPECT_NE(BackOff(1).Next(), BackOff(2).Next()); }

}  // namespace
}  // namespace farandole
