#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/core/tuning.h"
#include "collectives/engine/autotune/gaussian_process.h"
#include "tools/base/prng.h"

namespace farandole {

struct EngineTuning {
  int64_t fusion_threshold_bytes = 64 << 20;          // 0 to 64 MiB
  absl::Duration cycle_time = absl::Milliseconds(1);  // 1 to 100 ms
  bool cache_enabled = true;
  Algorithm allreduce = Algorithm::kAuto;
};

struct TunerConfig {
  int warmup_scores = 3;      // HOROVOD_AUTOTUNE_WARMUP_SAMPLES
  int steps_per_sample = 10;  // HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE
  int max_scores = 20;        // HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES, for each search over fusion and cycle
  double noise = 0.8;         // HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE, of scores with deviation 1
  uint64_t seed = 1;
  // What the user has set stays as in the initial tuning.
  bool fixed_fusion = false, fixed_cycle = false, fixed_cache = false, fixed_allreduce = false;
  std::vector<Algorithm> allreduces = {Algorithm::kAuto, Algorithm::kHierarchical};
};

// Tries the engine's parameters on rank 0, by bytes per microsecond. A search over fusion threshold and cycle time
// (four given points, then the largest expected improvement) is made for the initial choice of the others, then again
// for each other choice, one parameter after the other, the better one kept. A score is the median of five samples
// of `steps_per_sample` steps. Afterwards the best that was measured stays. Same records, same seed: same tunings.
// Pure; one thread.
class Tuner {
 public:
  Tuner(TunerConfig config, EngineTuning initial);

  // One step's allreduced bytes and the time from the step before. True: current() has changed, and has to reach all
  // ranks before their next step. Nothing after the end, nor for a duration that is not positive.
  bool Record(int64_t bytes, absl::Duration duration);

  const EngineTuning& current() const { return current_; }
  bool done() const { return done_; }

  // Lines for the log file since the last call, the header first, the best tuning last.
  std::string TakeLog();

 private:
  void Scored(double score);
  void Propose();
  void NextSearch();
  void Log(const EngineTuning& tuning, double score);
  void Finish();

  const TunerConfig config_;
  Prng prng_;
  EngineTuning current_, best_;
  double best_score_ = -1;
  bool done_ = false;
  int warmups_left_;
  std::vector<EngineTuning> outer_;  // what is still to be searched: only cache or allreduce of each counts
  bool searching_cache_ = false;
  int64_t bytes_ = 0;
  absl::Duration duration_ = absl::ZeroDuration();
  int steps_ = 0;
  std::vector<double> samples_;
  std::vector<Point> points_;   // of this search
  std::vector<double> scores_;  // of this search
  Point at_{};
  std::string log_;
};

}  // namespace farandole
