#include "collectives/engine/autotune/tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace farandole {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr int kSamplesPerScore = 5;
constexpr double kMargin = 0.01;

// Mebibytes and milliseconds in the unit square.
Point PointOf(double mebibytes, double milliseconds) { return {mebibytes / 64, (milliseconds - 1) / 99}; }

const Point kStart[] = {PointOf(4, 5), PointOf(32, 50), PointOf(16, 25), PointOf(8, 10)};

std::vector<double> Normalised(const std::vector<double>& scores) {
  const double n = static_cast<double>(scores.size());
  double mean = 0, square = 0;
  for (const double s : scores) mean += s / n;
  for (const double s : scores) square += (s - mean) * (s - mean) / n;
  std::vector<double> result;
  for (const double s : scores) result.push_back(square > 0 ? (s - mean) / std::sqrt(square) : 0);
  return result;
}

}  // namespace

Tuner::Tuner(TunerConfig config, EngineTuning initial)
    : config_(std::move(config)),
      prng_(config_.seed),
      current_(initial),
      best_(initial),
      warmups_left_(config_.warmup_scores) {
  log_ =
      "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,"
      "tensor_fusion_threshold,score\n";
  if (!config_.fixed_allreduce) {
    for (const Algorithm algorithm : config_.allreduces) {
      if (algorithm == initial.allreduce) continue;
      outer_.push_back(initial);
      outer_.back().allreduce = algorithm;
    }
  }
  if (config_.fixed_fusion && config_.fixed_cycle && config_.fixed_cache && outer_.empty()) {
    done_ = true;
    return;
  }
  Propose();
}

bool Tuner::Record(int64_t bytes, absl::Duration duration) {
  if (done_ || duration <= absl::ZeroDuration()) return false;
  bytes_ += bytes;
  duration_ += duration;
  if (++steps_ < config_.steps_per_sample) return false;
  samples_.push_back(static_cast<double>(bytes_) / absl::ToDoubleMicroseconds(duration_));
  bytes_ = 0;
  duration_ = absl::ZeroDuration();
  steps_ = 0;
  if (samples_.size() < kSamplesPerScore) return false;
  std::nth_element(samples_.begin(), samples_.begin() + kSamplesPerScore / 2, samples_.end());
  const double score = samples_[kSamplesPerScore / 2];
  samples_.clear();
  if (warmups_left_ > 0) {
    --warmups_left_;
    return false;
  }
  Scored(score);
  return true;
}

void Tuner::Scored(double score) {
  Log(current_, score);
  points_.push_back(at_);
  scores_.push_back(score);
  if (score > best_score_) {
    best_score_ = score;
    best_ = current_;
  }
  const bool alone = config_.fixed_fusion && config_.fixed_cycle;  // nothing to search: one score tells
  if (alone || static_cast<int>(scores_.size()) >= config_.max_scores) {
    NextSearch();
  } else {
    Propose();
  }
}

void Tuner::NextSearch() {
  points_.clear();
  scores_.clear();
  if (!outer_.empty()) {
    current_ = best_;
    current_.allreduce = outer_.front().allreduce;
    outer_.erase(outer_.begin());
  } else if (!config_.fixed_cache && !searching_cache_) {
    searching_cache_ = true;
    current_ = best_;
    current_.cache_enabled = !best_.cache_enabled;
  } else {
    Finish();
    return;
  }
  Propose();
}

void Tuner::Propose() {
  const Point fixed = PointOf(static_cast<double>(current_.fusion_threshold_bytes) / kMebibyte,
                              absl::ToDoubleMilliseconds(current_.cycle_time));
  const auto allowed = [&](Point p) {
    if (config_.fixed_fusion) p[0] = fixed[0];
    if (config_.fixed_cycle) p[1] = fixed[1];
    return p;
  };
  if (points_.size() < std::size(kStart)) {
    at_ = allowed(kStart[points_.size()]);
  } else {
    const std::vector<double> values = Normalised(scores_);
    const GaussianProcess process = GaussianProcess::Fitted(points_, values, config_.noise);
    const double best = *std::max_element(values.begin(), values.end());
    double largest = -1;
    const auto consider = [&](const Point& point) {
      const double gain = ExpectedImprovement(process.At(point), best, kMargin);
      if (gain > largest) {
        largest = gain;
        at_ = point;
      }
    };
    for (int i = 0; i < 500; ++i) consider(allowed({prng_.Unit(), prng_.Unit()}));
    for (double reach = 0.1; reach > 0.001; reach /= 2) {
      const Point around = at_;
      for (int i = 0; i < 16; ++i) {
        consider(allowed({std::clamp(around[0] + reach * (2 * prng_.Unit() - 1), 0.0, 1.0),
                          std::clamp(around[1] + reach * (2 * prng_.Unit() - 1), 0.0, 1.0)}));
      }
    }
  }
  if (!config_.fixed_fusion) current_.fusion_threshold_bytes = std::llround(at_[0] * 64 * kMebibyte);
  if (!config_.fixed_cycle) current_.cycle_time = absl::Milliseconds(1 + at_[1] * 99);
}

void Tuner::Finish() {
  done_ = true;
  current_ = best_;
  Log(best_, best_score_);
}

void Tuner::Log(const EngineTuning& tuning, double score) {
  absl::StrAppend(&log_, tuning.allreduce == Algorithm::kHierarchical ? 1 : 0, ",0,0,", tuning.cache_enabled ? 1 : 0,
                  ",", absl::ToDoubleMilliseconds(tuning.cycle_time), ",",
                  static_cast<double>(tuning.fusion_threshold_bytes) / kMebibyte, ",", score, "\n");
}

std::string Tuner::TakeLog() { return std::exchange(log_, std::string()); }

}  // namespace farandole
