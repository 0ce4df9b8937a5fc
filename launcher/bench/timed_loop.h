#pragma once

// How the cost of one collective is measured, alike for whoever does it: `farandole bench` and the programs for Open
// MPI and Gloo (tests/bench) run this loop, so they have the same warm-up, the same number of rounds and the same
// statistics. Only the C++ library is used: those programs are not built by Bazel.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace farandole::bench {

struct Timing {
  double median_us = 0;
  double p99_us = 0;
  int64_t rounds = 0;
};

inline Timing TimingOf(std::vector<double> microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  const auto at = [&](double share) { return microseconds[static_cast<size_t>(share * (microseconds.size() - 1))]; };
  return {at(0.5), at(0.99), static_cast<int64_t>(microseconds.size())};
}

// What one round is: the operation; a broadcast is followed by a barrier, or its root would only be timed handing bytes
// over.
//
// Times `once` for about `seconds`. `once()` is one round on this rank and returns whether it succeeded;
// `agree(&rounds)` makes rank 0's number everybody's, and waits for all. Returns whether all went well; `timing` is
// this rank's own.
template <typename Once, typename Agree>
bool TimeRounds(double seconds, Once once, Agree agree, Timing* timing) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kLeast = 7, kMost = 20000;
  const auto run = [&](int64_t rounds, std::vector<double>* samples) {
    for (int64_t i = 0; i < rounds; ++i) {
      const auto start = Clock::now();
      if (!once()) return false;
      const std::chrono::duration<double, std::micro> passed = Clock::now() - start;
      samples->push_back(passed.count());
    }
    return true;
  };
  std::vector<double> samples;
  int64_t rounds = 0;
  if (!agree(&rounds) || !run(3, &samples)) return false;  // touches the memory, makes the links
  const double each = TimingOf(samples).median_us;
  rounds = std::clamp(static_cast<int64_t>(seconds * 1e6 / std::max(each, 0.1)), kLeast, kMost);
  if (!agree(&rounds)) return false;
  samples.clear();
  samples.reserve(static_cast<size_t>(rounds));
  if (!run(rounds, &samples)) return false;
  *timing = TimingOf(std::move(samples));
  return true;
}

// One line of JSON; what all programs print. `bytes_per_second` is `bytes` over the median.
inline void PrintTiming(const std::string& op, int np, int64_t bytes, const std::string& transport,
                        const std::string& more, const Timing& timing) {
  std::printf(
      "{\"op\": \"%s\", \"np\": %d, \"bytes\": %lld, \"transport\": \"%s\", %s\"median_us\": %.3f, \"p99_us\": %.3f, "
      "\"bytes_per_second\": %.0f, \"rounds\": %lld}\n",
      op.c_str(), np, static_cast<long long>(bytes), transport.c_str(), more.c_str(), timing.median_us, timing.p99_us,
      static_cast<double>(bytes) / timing.median_us * 1e6, static_cast<long long>(timing.rounds));
  std::fflush(stdout);
}

}  // namespace farandole::bench
