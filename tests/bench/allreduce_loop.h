#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace farandole::bench {

// What an allreduce costs, measured alike whoever does it: allreduce_farandole.cc and allreduce_mpi.cc both run this
// loop, so they have the same buffers, the same warm-up and the same output. Only the C++ library is used: the one for
// MPI is not built by Bazel.

// A message size, how many operations one sample times back to back, and how many samples there are.
struct Case {
  size_t bytes;
  int operations;
  int samples;
};

inline constexpr Case kCases[] = {{4, 500, 5}, {size_t{1} << 20, 20, 5}, {size_t{16} << 20, 5, 5}};

// Runs all cases on this rank. `allreduce(in, out, count)` sums `count` floats over the `size` ranks and returns once
// this rank's `out` is complete; `barrier()` waits for all ranks. Both return whether they succeeded. For each case
// rank 0 prints one line: {"bytes": 4, "microseconds": [each sample's mean time of one operation]}. Returns the
// process's exit code: 1, with a sentence on stderr, when an operation failed or a sum was wrong.
template <typename Allreduce, typename Barrier>
int RunAllreduceCases(int rank, int size, Allreduce allreduce, Barrier barrier) {
  const float expected = 0.5f * static_cast<float>(size) * static_cast<float>(size + 1);
  for (const Case& c : kCases) {
    const size_t count = c.bytes / sizeof(float);
    const std::vector<float> in(count, static_cast<float>(rank + 1));
    std::vector<float> out(count, -1.0f);
    std::string samples;
    for (int sample = -1; sample < c.samples; ++sample) {  // the first one warms up
      if (!barrier()) return 1;
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < c.operations; ++i) {
        if (!allreduce(in.data(), out.data(), count)) return 1;
      }
      const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
      if (sample >= 0) samples += (sample > 0 ? ", " : "") + std::to_string(passed.count() / c.operations);
    }
    const auto wrong = std::find_if(out.begin(), out.end(), [&](float value) { return value != expected; });
    if (wrong != out.end()) {
      std::fprintf(stderr, "rank %d: a sum of %zu bytes is wrong: element %td is %g, not %g\n", rank, c.bytes,
                   wrong - out.begin(), static_cast<double>(*wrong), static_cast<double>(expected));
      return 1;
    }
    if (rank == 0) std::printf("{\"bytes\": %zu, \"microseconds\": [%s]}\n", c.bytes, samples.c_str());
  }
  std::fflush(stdout);
  return 0;
}

}  // namespace farandole::bench
