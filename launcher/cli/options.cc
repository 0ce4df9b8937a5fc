#include "launcher/cli/options.h"

#include <algorithm>

#include "absl/strings/str_split.h"

namespace farandole {
namespace {

constexpr absl::string_view kGeneral = "Options";
constexpr absl::string_view kHosts = "Hosts";
constexpr absl::string_view kSsh = "SSH";
constexpr absl::string_view kEnvironment = "Environment and output";
constexpr absl::string_view kTuning = "Tuning (variables for the processes)";
constexpr absl::string_view kElastic = "Elastic jobs";
constexpr absl::string_view kHidden = "";

// Makers of rows, so that each says only what matters.
constexpr OptionSpec Switch(absl::string_view words, absl::string_view group, absl::string_view help,
                            absl::string_view setting = "", absl::string_view setting_value = "1") {
  return {words, 0, group, help, "", setting, setting_value, false, false};
}
constexpr OptionSpec Value(absl::string_view words, absl::string_view value_name, absl::string_view group,
                           absl::string_view help, int values = 1) {
  return {words, values, group, help, value_name, "", "", false, false};
}
constexpr OptionSpec Repeatable(OptionSpec option) {
  option.repeatable = true;
  return option;
}
constexpr OptionSpec AddingTo(absl::string_view setting, OptionSpec option) {
  option.setting = setting;
  return Repeatable(option);
}
constexpr OptionSpec Ours(OptionSpec option) {
  option.ours = true;
  return option;
}

constexpr OptionSpec kOptions[] = {
    Value("-np --num-proc", "N", kGeneral, "processes to start"),
    Value("--config-file", "FILE", kGeneral, "settings from a YAML file; options of the command line win"),
    Value("--start-timeout", "S", kGeneral, "seconds until all hosts are ready (HOROVOD_START_TIMEOUT; 30)"),
    Ours(Value("--grace", "S", kGeneral, "seconds from TERM to KILL when processes must end (default 5)")),
    Ours(Switch("--dry-run", kGeneral, "show what would be started where, and end")),
    Ours(Value("--format", "FORMAT", kGeneral, "of --dry-run: text or json")),
    Switch("--disable-cache", kGeneral, "nothing: no results of earlier checks are kept here"),
    Switch("--verbose", kGeneral, "say what is done, and why"),
    Switch("-cb --check-build", kGeneral, "show what this build can do, and end"),
    Switch("-v --version", kGeneral, "show the version, and end"),
    Switch("-h --help", kGeneral, "show this, and end"),

    Value("-H --hosts", "HOSTS", kHosts, "where: [USER@]HOST[:SLOTS],... (default localhost:N; alone 1 slot)"),
    Value("-hostfile --hostfile", "FILE", kHosts, "the same from a file, a host per line: \"HOST slots=N port=P\""),
    AddingTo("--network-interface", Value("--network-interface", "NETS", kHosts,
                                          "what processes talk over: names, ranges (10.0.0.0/8), HOST=NAME,...")),
    AddingTo("--network-interface", Value("--network-interfaces", "NETS", kHosts, "the same")),
    Ours(Value("--port-range", "A-B", kHosts, "the ports that this job may listen on (default any free ones)")),

    Value("-p --ssh-port", "PORT", kSsh, "of hosts without one of their own"),
    Value("-i --ssh-identity-file", "FILE", kSsh, "the private key to offer"),
    Ours(Value("--ssh-backend", "WHICH", kSsh, "libssh (default), or openssh: the ssh program of this machine")),
    Ours(Switch("--ssh-accept-new-host-keys", kSsh, "trust hosts that known_hosts does not have yet")),

    Ours(Repeatable(Value("--env", "NAME[=VALUE]", kEnvironment, "a variable for every process, from here or given"))),
    Ours(Repeatable(Value("--env-deny", "PATTERN", kEnvironment, "variables that stay home, such as 'AWS_*'"))),
    Value("--output-filename", "DIR", kEnvironment, "also write each rank's output to DIR/rank.R/stdout and stderr"),
    Ours(Value("--output-dir", "DIR", kEnvironment, "also write the output of each start of a process to a file")),
    Ours(Value("--output-prefix", "TEMPLATE", kEnvironment,
               "of each line; {rank} {host} {local_rank} {stream} {gen} {time}")),
    Switch("-prefix-timestamp --prefix-output-with-timestamp", kEnvironment, "put the time before each line of output"),
    Value("--log-level", "LEVEL", kEnvironment, "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL"),
    Switch("--log-with-timestamp", kHidden, "", "--log-with-timestamp", "1"),
    Switch("--log-without-timestamp", kEnvironment, "no time in log messages", "--log-with-timestamp", "0"),
    Switch("--log-hide-timestamp", kHidden, "", "--log-with-timestamp", "0"),
    Switch("--no-log-hide-timestamp", kHidden, "", "--log-with-timestamp", "1"),

    Value("--fusion-threshold-mb", "MB", kTuning, "size of the fusion buffer; 0 turns fusion off"),
    Value("--cycle-time-ms", "MS", kTuning, "of the original's engine"),
    Value("--cache-capacity", "N", kTuning, "entries of the original's response cache"),
    Switch("--hierarchical-allreduce", kTuning, "allreduce within hosts first", "--hierarchical-allreduce"),
    Switch("--no-hierarchical-allreduce", kTuning, "or not", "--hierarchical-allreduce", "0"),
    Switch("--hierarchical-allgather", kTuning, "allgather within hosts first", "--hierarchical-allgather"),
    Switch("--no-hierarchical-allgather", kTuning, "or not", "--hierarchical-allgather", "0"),
    Switch("--torus-allreduce", kTuning, "allreduce over rows and columns", "--torus-allreduce"),
    Switch("--no-torus-allreduce", kTuning, "or not", "--torus-allreduce", "0"),
    Switch("--autotune", kTuning, "find the best of these while training", "--autotune"),
    Switch("--no-autotune", kHidden, "", "--autotune", "0"),
    Value("--autotune-log-file", "FILE", kTuning, "what was tried"),
    Value("--autotune-warmup-samples", "N", kTuning, "not counted, at the start"),
    Value("--autotune-steps-per-sample", "N", kTuning, "steps in each sample"),
    Value("--autotune-bayes-opt-max-samples", "N", kTuning, "when to stop"),
    Value("--autotune-gaussian-process-noise", "X", kTuning, "0 to 1"),
    Value("--timeline-filename", "FILE", kTuning, "record what each tensor waited for"),
    Switch("--timeline-mark-cycles", kTuning, "with marks for cycles", "--timeline-mark-cycles"),
    Switch("--no-timeline-mark-cycles", kHidden, "", "--timeline-mark-cycles", "0"),
    Switch("--no-stall-check", kTuning, "do not look for ranks that wait for others", "--stall-check", "0"),
    Switch("--stall-check", kHidden, "", "--stall-check", "1"),
    Value("--stall-check-warning-time-seconds", "S", kTuning, "wait until it is told"),
    Value("--stall-check-shutdown-time-seconds", "S", kTuning, "wait until the job ends; 0: never"),
    Value("--gloo-timeout-seconds", "S", kTuning, "for connections and operations between processes"),
    Value("--num-nccl-streams", "N", kTuning, "streams of NCCL operations"),
    Value("--thread-affinity", "N", kTuning, "core of the engine's thread"),
    Switch("--tcp", kTuning, "no InfiniBand (NCCL_IB_DISABLE=1)"),
    Switch("--mpi-threads-disable", kTuning, "of MPI, which is not used here", "--mpi-threads-disable"),
    Switch("--no-mpi-threads-disable", kHidden, "", "--mpi-threads-disable", "0"),
    Value("--mpi-args", "ARGS", kTuning, "of mpirun, which is not used here"),
    Value("--binding-args", "ARGS", kTuning, "of mpirun, which is not used here"),
    Switch("--gloo", kTuning, "what this is compatible with", "--controller", "gloo"),
    Switch("--mpi", kTuning, "the same job, without mpirun", "--controller", "mpi"),
    Switch("--jsrun", kTuning, "the same job, without jsrun", "--controller", "jsrun"),

    Value("--min-np --min-num-proc", "N", kElastic, "processes to go on with; makes the job elastic"),
    Value("--max-np --max-num-proc", "N", kElastic, "processes at most"),
    Value("--slots-per-host", "N", kElastic, "of hosts that are discovered without a number"),
    Value("--host-discovery-script", "FILE", kElastic, "a program that prints hosts; makes the job elastic"),
    Value("--elastic-timeout", "S", kElastic, "to wait for enough slots (HOROVOD_ELASTIC_TIMEOUT; 600)"),
    Value("--reset-limit", "N", kElastic, "membership changes at most"),
    Value("--blacklist-cooldown-range", "MIN MAX", kElastic, "seconds until a failed host may return, 1 to 3600", 2),
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
absl::string_view OptionSpec::Setting() const { return setting.empty() ? Canonical() : setting; }

absl::Span<const OptionSpec> AllOptions() { return kOptions; }

const OptionSpec* FindOption(absl::string_view word) {
  for (const OptionSpec& option : kOptions) {
    for (absl::string_view spelling : option.Words()) {
      if (spelling == word) return &option;
    }
  }
  return nullptr;
}

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
