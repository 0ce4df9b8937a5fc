#include "collectives/engine/autotune/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_split.h"

namespace farandole {
namespace {

// Bytes per microsecond, 100 at the most.
double Surface(const EngineTuning& tuning, double best_mebibytes, double best_ms) {
  const double x = (static_cast<double>(tuning.fusion_threshold_bytes) / (1 << 20) - best_mebibytes) / 64;
  const double y = (absl::ToDoubleMilliseconds(tuning.cycle_time) - best_ms) / 99;
  return 100 * std::exp(-(x * x + y * y));
}

template <typename Rate>
int TuneOn(Tuner& tuner, Rate rate) {
  int steps = 0;
  for (; !tuner.done() && steps < 100000; ++steps) {
    tuner.Record(1 << 20, absl::Microseconds((1 << 20) / rate(tuner.current())));
  }
  return steps;
}

TunerConfig OnlyFusionAndCycle(uint64_t seed) { return {.seed = seed, .fixed_cache = true, .fixed_allreduce = true}; }

TEST(Tuner, ComesNearTheOptimumAndBeatsChance) {
  int near = 0, better = 0;
  constexpr int kSeeds = 60;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Prng prng(seed);
    const double mebibytes = prng.Unit() * 64, ms = 1 + prng.Unit() * 99;
    const auto rate = [&](const EngineTuning& tuning) { return Surface(tuning, mebibytes, ms); };
    Tuner tuner(OnlyFusionAndCycle(seed), {});
    TuneOn(tuner, rate);
    double chance = 0;
    for (int i = 0; i < 20; ++i) {
      EngineTuning tuning;
      tuning.fusion_threshold_bytes = static_cast<int64_t>(prng.Unit() * (64 << 20));
      tuning.cycle_time = absl::Milliseconds(1 + prng.Unit() * 99);
      chance = std::max(chance, rate(tuning));
    }
    near += rate(tuner.current()) > 97;
    better += rate(tuner.current()) > chance;
  }
  EXPECT_GT(near, kSeeds * 9 / 10);
  EXPECT_GT(better, kSeeds / 2) << "of " << kSeeds;
}

TEST(Tuner, FindsTheBetterChoices) {
  Tuner tuner({}, {});
  TuneOn(tuner, [](const EngineTuning& t) {
    return Surface(t, 20, 10) * (t.cache_enabled ? 1 : 2) * (t.allreduce == Algorithm::kHierarchical ? 2 : 1);
  });
  EXPECT_TRUE(tuner.done());
  EXPECT_EQ(tuner.current().allreduce, Algorithm::kHierarchical);
  EXPECT_FALSE(tuner.current().cache_enabled);
  const std::vector<std::string> lines = absl::StrSplit(tuner.TakeLog(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 1u + 60u + 1u);
  EXPECT_EQ(lines.back().substr(0, 8), "1,0,0,0,");
  EXPECT_EQ(tuner.TakeLog(), "");
}

TEST(Tuner, LeavesAloneWhatIsFixedAndKeepsCount) {
  TunerConfig config = OnlyFusionAndCycle(3);
  config.fixed_cycle = true;
  Tuner tuner(config, {.cycle_time = absl::Milliseconds(7)});
  const int steps = TuneOn(tuner, [](const EngineTuning& t) {
    EXPECT_EQ(t.cycle_time, absl::Milliseconds(7));
    return Surface(t, 20, 7);
  });
  EXPECT_EQ(steps, (3 + 20) * 5 * 10);
  EXPECT_FALSE(tuner.Record(1, absl::Seconds(1)));

  config.fixed_fusion = true;
  EXPECT_TRUE(Tuner(config, {}).done());
}

TEST(Tuner, SameSeedSameTunings) {
  const auto rate = [](const EngineTuning& t) { return Surface(t, 40, 60); };
  Tuner a(OnlyFusionAndCycle(9), {}), b(OnlyFusionAndCycle(9), {});
  TuneOn(a, rate);
  TuneOn(b, rate);
  EXPECT_EQ(a.TakeLog(), b.TakeLog());
}

}  // namespace
}  // namespace farandole
