#include "collectives/engine/autotune/gaussian_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/base/prng.h"

namespace farandole {
namespace {

// Two points: the inverse of the covariance [[p, q], [q, p]] is written out.
TEST(GaussianProcess, AgreesWithTheClosedFormForTwoPoints) {
  const double noise = 0.3, length = 0.4, amplitude = 1.5;
  const Point a{0.1, 0.2}, b{0.5, 0.4}, x{0.3, 0.6};
  const double ya = 0.7, yb = -1.1;
  const auto kernel = [&](const Point& u, const Point& v) {
    return amplitude * amplitude *
           std::exp(-(std::pow(u[0] - v[0], 2) + std::pow(u[1] - v[1], 2)) / (2 * length * length));
  };
  const double p = amplitude * amplitude + noise * noise, q = kernel(a, b), det = p * p - q * q;
  const double ka = kernel(x, a), kb = kernel(x, b);
  const GaussianProcess process({a, b}, {ya, yb}, noise, length, amplitude);
  EXPECT_NEAR(process.At(x).mean, (ka * (p * ya - q * yb) + kb * (p * yb - q * ya)) / det, 1e-12);
  EXPECT_NEAR(process.At(x).variance, amplitude * amplitude - (ka * (p * ka - q * kb) + kb * (p * kb - q * ka)) / det,
              1e-12);
  EXPECT_NEAR(
      process.log_likelihood(),
      -(ya * (p * ya - q * yb) + yb * (p * yb - q * ya)) / det / 2 - std::log(det) / 2 - std::log(2 * std::numbers::pi),
      1e-12);
}

TEST(GaussianProcess, FittingIsAsLikelyAsTheBestOfAFineGrid) {
  Prng prng(5);
  std::vector<Point> points;
  std::vector<double> values;
  for (int i = 0; i < 15; ++i) {
    points.push_back({prng.Unit(), prng.Unit()});
    values.push_back(std::sin(5 * points.back()[0]) + points.back()[1]);
  }
  const GaussianProcess fitted = GaussianProcess::Fitted(points, values, 0.1);
  double best = -1e300;
  for (double length = 0.05; length <= 2; length *= 1.1) {
    for (double amplitude = 0.1; amplitude <= 10; amplitude *= 1.1) {
      best = std::max(best, GaussianProcess(points, values, 0.1, length, amplitude).log_likelihood());
    }
  }
  EXPECT_GT(fitted.log_likelihood(), best - 0.05);
}

TEST(ExpectedImprovement, AgreesWithTheIntegral) {
  for (const double mean : {-1.0, 0.0, 0.4, 2.0}) {
    for (const double deviation : {0.1, 0.5, 2.0}) {
      const double best = 0.3, margin = 0.01, step = deviation * 1e-3;
      double integral = 0;
      for (double f = mean - 10 * deviation; f < mean + 10 * deviation; f += step) {
        const double z = (f - mean) / deviation;
        integral += std::max(0.0, f - best - margin) * std::exp(-z * z / 2) /
                    (deviation * std::sqrt(2 * std::numbers::pi)) * step;
      }
      EXPECT_NEAR(ExpectedImprovement({mean, deviation * deviation}, best, margin), integral, 1e-4 * deviation);
    }
  }
  EXPECT_EQ(ExpectedImprovement({1, 0}, 0.5, 0), 0.5);
  EXPECT_EQ(ExpectedImprovement({0, 0}, 0.5, 0), 0);
}

}  // namespace
}  // namespace farandole
