#include "launcher/bench/print_timing.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"

namespace farandole {

void PrintHeader(const BenchRequest& request) {
  if (request.json) return;
  std::printf("%s of %s, %d processes, %s%s\n%14s %12s %12s %10s\n", std::string(Name(request.op)).c_str(),
              std::string(Name(request.dtype)).c_str(), request.np, request.transport.c_str(),
              request.engine ? ", through the engine" : "", "bytes", "median us", "p99 us", "GB/s");
  std::fflush(stdout);
}

void PrintTiming(const BenchRequest& request, int64_t bytes, const bench::Timing& timing) {
  if (request.json) {
    const std::string more =
        absl::StrCat("\"dtype\": \"", Name(request.dtype), "\", \"algorithm\": \"", Name(request.algorithm),
                     "\", \"engine\": ", request.engine ? "true" : "false", ", \"tensors\": ", request.tensors, ", ");
    return bench::PrintTiming(std::string(Name(request.op)), request.np, bytes, request.transport, more, timing);
  }
  std::printf("%14lld %12.2f %12.2f %10.2f\n", static_cast<long long>(bytes), timing.median_us, timing.p99_us,
              static_cast<double>(bytes * request.tensors) / timing.median_us / 1e3);
  std::fflush(stdout);
}

}  // namespace farandole
