#pragma once

#include <array>
#include <vector>

namespace farandole {

// A function on the unit square, guessed from noisy values of it: a Gaussian process of mean zero with the squared
// exponential kernel  amplitude^2 exp(-|a - b|^2 / (2 length^2))  and noise^2 on the diagonal (Rasmussen and Williams,
// Gaussian Processes for Machine Learning, 2006, algorithm 2.1). For some dozens of points: fitting costs n^3. Pure.
using Point = std::array<double, 2>;

struct Guess {
  double mean = 0;
  double variance = 0;  // of the function itself, without the noise
};

class GaussianProcess {
 public:
  // points and values: as many of each; noise > 0.
  GaussianProcess(std::vector<Point> points, std::vector<double> values, double noise, double length, double amplitude);

  // The same with the length (0.05 to 2) and amplitude (0.1 to 10) of the greatest likelihood: a grid of powers, then
  // a pattern search that halves its step; the same numbers every time.
  static GaussianProcess Fitted(const std::vector<Point>& points, const std::vector<double>& values, double noise);

  Guess At(const Point& point) const;
  // Of the values, natural logarithm.
  double log_likelihood() const { return log_likelihood_; }
  double length() const { return length_; }
  double amplitude() const { return amplitude_; }

 private:
  double Kernel(const Point& a, const Point& b) const;
  // Solves L x = b in place.
  void SolveLower(std::vector<double>& b) const;

  std::vector<Point> points_;
  double length_, amplitude_;
  std::vector<std::vector<double>> lower_;  // Cholesky factor of the covariance, row i has i + 1 elements
  std::vector<double> weights_;             // covariance^-1 values
  double log_likelihood_ = 0;
};

// The mean of max(0, f - best - margin) for f as guessed (Jones, Schonlau, Welch 1998).
double ExpectedImprovement(const Guess& guess, double best, double margin);

}  // namespace farandole
