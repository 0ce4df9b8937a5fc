#include "launcher/cli/options.h"

#include <algorithm>

#include "absl/strings/str_split.h"

namespace farandole {
namespace {

constexpr OptionSpec kOptions[] = {
    {"-np --num-proc", 1, "processes to start", "N"},
    {"-H --hosts", 1, "where: HOST:SLOTS,... (default localhost:N; HOST alone has 1 slot; [::1]:2)", "HOSTS"},
    {"-hostfile --hostfile", 1, "the same from a file, a host per line: \"HOST slots=N\"", "FILE"},
    {"--output-filename", 1, "also write each process's output to DIR/rank.R/stdout and stderr", "DIR"},
    {"-prefix-timestamp --prefix-output-with-timestamp", 0, "put the time before each line of output", ""},
    {"--verbose", 0, "say what is done, and why", ""},
    {"-cb --check-build", 0, "show what this build can do, and end", ""},
    {"-v --version", 0, "show the version, and end", ""},
    {"-h --help", 0, "show this, and end", ""},

    // Not there yet.
    {"--disable-cache"},
    {"--start-timeout", 1},
    {"--network-interfaces", 1},
    {"--network-interface", 1},
    {"--config-file", 1},
    {"-p --ssh-port", 1},
    {"-i --ssh-identity-file", 1},
    {"--fusion-threshold-mb", 1},
    {"--cycle-time-ms", 1},
    {"--cache-capacity", 1},
    {"--hierarchical-allreduce"},
    {"--no-hierarchical-allreduce"},
    {"--hierarchical-allgather"},
    {"--no-hierarchical-allgather"},
    {"--torus-allreduce"},
    {"--no-torus-allreduce"},
    {"--autotune"},
    {"--no-autotune"},
    {"--autotune-log-file", 1},
    {"--autotune-warmup-samples", 1},
    {"--autotune-steps-per-sample", 1},
    {"--autotune-bayes-opt-max-samples", 1},
    {"--autotune-gaussian-process-noise", 1},
    {"--min-np --min-num-proc", 1},
    {"--max-np --max-num-proc", 1},
    {"--slots-per-host", 1},
    {"--elastic-timeout", 1},
    {"--reset-limit", 1},
    {"--blacklist-cooldown-range", 2},
    {"--host-discovery-script", 1},
    {"--timeline-filename", 1},
    {"--timeline-mark-cycles"},
    {"--no-timeline-mark-cycles"},
    {"--no-stall-check"},
    {"--stall-check"},
    {"--stall-check-warning-time-seconds", 1},
    {"--stall-check-shutdown-time-seconds", 1},
    {"--mpi-threads-disable"},
    {"--no-mpi-threads-disable"},
    {"--mpi-args", 1},
    {"--tcp"},
    {"--binding-args", 1},
    {"--num-nccl-streams", 1},
    {"--thread-affinity", 1},
    {"--gloo-timeout-seconds", 1},
    {"--log-level", 1},
    {"--log-with-timestamp"},
    {"--log-without-timestamp"},
    {"--log-hide-timestamp"},
    {"--no-log-hide-timestamp"},
    {"--gloo"},
    {"--mpi"},
    {"--jsrun"},
};

// Insertions, deletions, replacements and swaps of neighbours that make `a` into `b`.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<size_t>> distance(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& best = distance[i][j];
      best = std::max(i, j);
      if (i == 0 || j == 0) continue;
      best =
          std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1, distance[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) best = std::min(best, distance[i - 2][j - 2] + 1);
    }
  }
  return distance[a.size()][b.size()];
}

absl::string_view WithoutDashes(absl::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

}  // namespace

std::vector<absl::string_view> OptionSpec::Words() const { return absl::StrSplit(words, ' '); }
absl::string_view OptionSpec::Canonical() const { return words.substr(words.rfind("--")); }
absl::string_view OptionSpec::Usual() const { return words.substr(0, words.find(' ')); }

absl::Span<const OptionSpec> AllOptions() { return kOptions; }

std::string NearestWord(absl::string_view word, absl::Span<const absl::string_view> words) {
  constexpr size_t kLongest = 64;  // longer ones are no typing mistakes
  const absl::string_view plain = WithoutDashes(word);
  if (plain.empty() || plain.size() > kLongest) return "";
  absl::string_view nearest;
  // At most every third character wrong.
  size_t best = plain.size() / 3 + 1;
  for (absl::string_view candidate : words) {
    const size_t distance = EditDistance(plain, WithoutDashes(candidate));
    if (distance < best || (distance == best && nearest.empty() && distance < plain.size())) {
      best = distance;
      nearest = candidate;
    }
  }
  return std::string(nearest);
}

std::string NearestOption(absl::string_view word) {
  std::vector<absl::string_view> all;
  for (const OptionSpec& option : AllOptions()) {
    for (absl::string_view spelling : option.Words()) all.push_back(spelling);
  }
  return NearestWord(word, all);
}

}  // namespace farandole
