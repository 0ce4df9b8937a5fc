#include "launcher/cli/tunables.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "launcher/cli/numbers.h"
#include "launcher/cli/quote.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

enum class Kind { kMegabytes, kWhole, kReal, kShare, kSwitch, kOppositeSwitch, kText, kLogLevel };

struct Tunable {
  absl::string_view option;
  absl::string_view variable;
  Kind kind;
  // The setting without which it means nothing; empty: none.
  absl::string_view only_with = "";
  // Why it changes nothing here, though the variable is set; empty: it does what it says.
  absl::string_view no_effect = "";
};

// What this version's engine does not have. The variable is set all the same: programs look at it.
constexpr absl::string_view kNoCycle = "the engine here works when there is work and has no cycle";
constexpr absl::string_view kNoCache = "the engine here has no response cache yet";
constexpr char kOneWay[] = "the engine here has one way to do it yet";
constexpr absl::string_view kNoAutotune = "the engine here does not tune itself yet";
constexpr absl::string_view kNoTimeline = "the engine here does not record a timeline yet";
constexpr absl::string_view kNoNccl = "the engine here does not use NCCL yet";
constexpr absl::string_view kNoAffinity = "the engine here does not pin its thread yet";
constexpr absl::string_view kNoLog = "the engine here has no log levels yet";
constexpr absl::string_view kNoMpi = "there is no MPI here";

constexpr Tunable kTunables[] = {
    {"--fusion-threshold-mb", "HOROVOD_FUSION_THRESHOLD", Kind::kMegabytes},
    {"--cycle-time-ms", "HOROVOD_CYCLE_TIME", Kind::kReal, "", kNoCycle},
    {"--cache-capacity", "HOROVOD_CACHE_CAPACITY", Kind::kWhole, "", kNoCache},
    {"--hierarchical-allreduce", "HOROVOD_HIERARCHICAL_ALLREDUCE", Kind::kSwitch, "", kOneWay},
    {"--hierarchical-allgather", "HOROVOD_HIERARCHICAL_ALLGATHER", Kind::kSwitch, "", kOneWay},
    {"--torus-allreduce", "HOROVOD_TORUS_ALLREDUCE", Kind::kSwitch, "", kOneWay},
    {"--autotune", "HOROVOD_AUTOTUNE", Kind::kSwitch, "", kNoAutotune},
    {"--autotune-log-file", "HOROVOD_AUTOTUNE_LOG", Kind::kText, "--autotune"},
    {"--autotune-warmup-samples", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES", Kind::kWhole, "--autotune"},
    {"--autotune-steps-per-sample", "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", Kind::kWhole, "--autotune"},
    {"--autotune-bayes-opt-max-samples", "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", Kind::kWhole, "--autotune"},
    {"--autotune-gaussian-process-noise", "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", Kind::kShare, "--autotune"},
    {"--timeline-filename", "HOROVOD_TIMELINE", Kind::kText, "", kNoTimeline},
    {"--timeline-mark-cycles", "HOROVOD_TIMELINE_MARK_CYCLES", Kind::kSwitch, "--timeline-filename"},
    {"--stall-check", "HOROVOD_STALL_CHECK_DISABLE", Kind::kOppositeSwitch},
    {"--stall-check-warning-time-seconds", "HOROVOD_STALL_CHECK_TIME_SECONDS", Kind::kWhole},
    {"--stall-check-shutdown-time-seconds", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", Kind::kWhole},
    {"--mpi-threads-disable", "HOROVOD_MPI_THREADS_DISABLE", Kind::kSwitch, "", kNoMpi},
    {"--num-nccl-streams", "HOROVOD_NUM_NCCL_STREAMS", Kind::kWhole, "", kNoNccl},
    {"--thread-affinity", "HOROVOD_THREAD_AFFINITY", Kind::kWhole, "", kNoAffinity},
    {"--gloo-timeout-seconds", "HOROVOD_GLOO_TIMEOUT_SECONDS", Kind::kWhole},
    {"--log-level", "HOROVOD_LOG_LEVEL", Kind::kLogLevel, "", kNoLog},
    {"--log-with-timestamp", "HOROVOD_LOG_HIDE_TIME", Kind::kOppositeSwitch, "", kNoLog},
    {"--tcp", "NCCL_IB_DISABLE", Kind::kSwitch},
};

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kMegabyte = 1024 * 1024;

absl::StatusOr<std::string> LogLevel(const Setting& setting) {
  constexpr absl::string_view kLevels[] = {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"};
  const std::string upper = absl::AsciiStrToUpper(setting.value);
  for (absl::string_view level : kLevels) {
    if (upper == level) return upper;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(setting.origin, " ", Quote(setting.value), " is not one of ", absl::StrJoin(kLevels, ", ")));
}

absl::StatusOr<std::string> ValueOf(Kind kind, const Setting& setting) {
  switch (kind) {
    case Kind::kMegabytes: {
      ASSIGN_OR_RETURN(const int64_t megabytes, WholeNumber(setting, 0, kMost));
      return absl::StrCat(megabytes * kMegabyte);
    }
    case Kind::kWhole: {
      ASSIGN_OR_RETURN(const int64_t number, WholeNumber(setting, 0, kMost));
      return absl::StrCat(number);
    }
    case Kind::kReal: {
      ASSIGN_OR_RETURN(const double number, RealNumber(setting, 0, std::numeric_limits<double>::max()));
      return PythonFloat(number);
    }
    case Kind::kShare: {
      ASSIGN_OR_RETURN(const double number, RealNumber(setting, 0, 1));
      return PythonFloat(number);
    }
    case Kind::kSwitch:
      return setting.value;
    case Kind::kOppositeSwitch:
      return std::string(setting.value == "1" ? "0" : "1");
    case Kind::kText:
      return setting.value;
    case Kind::kLogLevel:
      return LogLevel(setting);
  }
  return absl::InternalError("a kind of tunable without a rule");
}

bool TurnedOn(const Settings& settings, absl::string_view name) {
  const Setting* const setting = settings.Find(name);
  return setting != nullptr && setting->value != "0";
}

bool IsOffSwitch(const Tunable& tunable, absl::string_view value) {
  return tunable.kind == Kind::kSwitch && value == "0";
}

// Options that no variable carries.
void NoteTheRest(const Settings& settings, std::vector<std::string>* notes) {
  const auto note = [&](absl::string_view name, absl::string_view what) {
    if (const Setting* setting = settings.Find(name)) notes->push_back(absl::StrCat(setting->origin, ": ", what));
  };
  note("--mpi-args", "there is no mpirun here; ignored");
  note("--binding-args", "there is no mpirun here; ignored: processes may run on every core of their host");
  note("--disable-cache", "nothing is kept from earlier checks here; there is nothing to turn off");
  const std::string controller = settings.Value("--controller");
  if (controller == "mpi") note("--controller", "there is no mpirun here; the job starts over ssh all the same");
  if (controller == "jsrun") note("--controller", "there is no jsrun here; the job starts over ssh all the same");
}

}  // namespace

absl::StatusOr<TuningResult> TranslateTunables(const Settings& settings) {
  TuningResult result;
  for (const Tunable& tunable : kTunables) {
    const Setting* const setting = settings.Find(tunable.option);
    if (setting == nullptr) continue;
    ASSIGN_OR_RETURN(const std::string value, ValueOf(tunable.kind, *setting));
    if (!tunable.only_with.empty() && !TurnedOn(settings, tunable.only_with)) {
      result.notes.push_back(absl::StrCat(setting->origin, ": means nothing without ", tunable.only_with, "; ignored"));
      continue;
    }
    result.variables.push_back(absl::StrCat(tunable.variable, "=", value));
    if (!tunable.no_effect.empty() && !IsOffSwitch(tunable, value)) {
      result.notes.push_back(
          absl::StrCat(setting->origin, ": ", tunable.no_effect, "; passed on as ", tunable.variable));
    }
  }
  NoteTheRest(settings, &result.notes);
  return result;
}

}  // namespace farandole
