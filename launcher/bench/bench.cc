#include "launcher/bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launcher/bench/bench_request.h"
#include "launcher/bench/collective_rounds.h"
#include "launcher/bench/forked_group.h"
#include "launcher/bench/print_timing.h"
#include "launcher/fail.h"

namespace farandole {

namespace {

// Each process has two tensors, and a transport's buffers beside.
absl::Status CheckMemory(const BenchRequest& request) {
  const double there = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const int64_t most = *std::max_element(request.bytes.begin(), request.bytes.end());
  const double wanted = 2.0 * static_cast<double>(most) * request.np * static_cast<double>(request.tensors);
  if (wanted <= there) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--bytes: ", request.np, " processes with tensors of ", most,
                                                 " bytes need more than the memory of this machine"));
}

}  // namespace

int RunBench(absl::Span<const std::string> arguments) {
  constexpr int kUsage = 2;
  const BenchCommandLine line = ParseBenchCommandLine(arguments);
  if (!line.run) {
    std::fputs(line.text.c_str(), line.error ? stderr : stdout);
    return line.error ? kUsage : 0;
  }
  const BenchRequest& request = line.request;
  if (const absl::Status status = CheckMemory(request); !status.ok()) return Fail(kUsage, "farandole bench", status);
  PrintHeader(request);
  const absl::Status status =
      RunForkedGroup(request.np, request.transport == "tcp" ? TransportChoice::kTcp : TransportChoice::kShm,
                     [&request](const ForkedMember& member) { return RunRounds(request, member); });
  return status.ok() ? 0 : Fail(kFailed, "farandole bench", status);
}

}  // namespace farandole
