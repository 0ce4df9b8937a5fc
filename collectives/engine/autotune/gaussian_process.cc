#include "collectives/engine/autotune/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace farandole {

GaussianProcess::GaussianProcess(std::vector<Point> points, std::vector<double> values, double noise, double length,
                                 double amplitude)
    : points_(std::move(points)), length_(length), amplitude_(amplitude) {
  const size_t n = points_.size();
  lower_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    lower_[i].resize(i + 1);
    for (size_t j = 0; j <= i; ++j) {
      double sum = Kernel(points_[i], points_[j]) + (i == j ? noise * noise : 0);
      for (size_t k = 0; k < j; ++k) sum -= lower_[i][k] * lower_[j][k];
      // Rounding may bring a sum that is the noise at least below it.
      lower_[i][j] = i == j ? std::sqrt(std::max(sum, noise * noise * 1e-6)) : sum / lower_[j][j];
    }
  }
  weights_ = values;
  SolveLower(weights_);
  for (const double w : weights_) log_likelihood_ -= w * w / 2;
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) weights_[i] -= lower_[k][i] * weights_[k];
    weights_[i] /= lower_[i][i];
    log_likelihood_ -= std::log(lower_[i][i]) + std::log(2 * std::numbers::pi) / 2;
  }
}

GaussianProcess GaussianProcess::Fitted(const std::vector<Point>& points, const std::vector<double>& values,
                                        double noise) {
  const auto with = [&](double log_length, double log_amplitude) {
    return GaussianProcess(points, values, noise, std::clamp(std::exp2(log_length), 0.05, 2.0),
                           std::clamp(std::exp2(log_amplitude), 0.1, 10.0));
  };
  double at[2] = {-1, 0};
  GaussianProcess best = with(at[0], at[1]);
  const auto consider = [&](double log_length, double log_amplitude) {
    GaussianProcess other = with(log_length, log_amplitude);
    if (other.log_likelihood() <= best.log_likelihood()) return false;
    best = std::move(other);
    at[0] = log_length;
    at[1] = log_amplitude;
    return true;
  };
  for (int l = -4; l <= 1; ++l) {
    for (int a = -3; a <= 3; ++a) consider(l, a);
  }
  for (double step = 0.5; step > 0.01; step /= 2) {
    const double l = at[0], a = at[1];
    consider(l + step, a);
    consider(l - step, a);
    consider(at[0], a + step);
    consider(at[0], a - step);
  }
  return best;
}

double GaussianProcess::Kernel(const Point& a, const Point& b) const {
  const double x = a[0] - b[0], y = a[1] - b[1];
  return amplitude_ * amplitude_ * std::exp(-(x * x + y * y) / (2 * length_ * length_));
}

void GaussianProcess::SolveLower(std::vector<double>& b) const {
  for (size_t i = 0; i < b.size(); ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= lower_[i][k] * b[k];
    b[i] /= lower_[i][i];
  }
}

Guess GaussianProcess::At(const Point& point) const {
  Guess guess;
  std::vector<double> k(points_.size());
  for (size_t i = 0; i < k.size(); ++i) {
    k[i] = Kernel(point, points_[i]);
    guess.mean += k[i] * weights_[i];
  }
  SolveLower(k);
  guess.variance = amplitude_ * amplitude_;
  for (const double v : k) guess.variance -= v * v;
  guess.variance = std::max(guess.variance, 0.0);
  return guess;
}

double ExpectedImprovement(const Guess& guess, double best, double margin) {
  const double gain = guess.mean - best - margin;
  const double deviation = std::sqrt(guess.variance);
  if (deviation < 1e-12) return std::max(gain, 0.0);
  const double z = gain / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return std::max(gain * std::erfc(-z / std::numbers::sqrt2) / 2 + deviation * density, 0.0);
}

}  // namespace farandole
