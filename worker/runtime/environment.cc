#include "worker/runtime/environment.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tools/base/log.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// The variables as absl wants them: empty when unset.
class Variables {
 public:
  explicit Variables(const std::function<const char*(const char*)>& lookup) : lookup_(lookup) {}
  absl::string_view Get(const char* name) const { return absl::NullSafeStringView(lookup_(name)); }

 private:
  const std::function<const char*(const char*)>& lookup_;
};

absl::Status Meaningless(absl::string_view name, absl::string_view value, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("environment variable ", name, " is \"", value, "\": ", wanted));
}

absl::Status ReadFusionThreshold(const Variables& variables, int64_t* bytes) {
  constexpr char kName[] = "HOROVOD_FUSION_THRESHOLD";
  const absl::string_view value = variables.Get(kName);
  if (value.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(value, bytes) || *bytes < 0) {
    return Meaningless(kName, value, "it must be a number of bytes, 0 for no fusion");
  }
  return absl::OkStatus();
}

absl::Status ReadStallWarning(const Variables& variables, absl::Duration* warning) {
  constexpr char kTime[] = "HOROVOD_STALL_CHECK_TIME_SECONDS";
  constexpr char kDisable[] = "HOROVOD_STALL_CHECK_DISABLE";
  double seconds = 0;
  if (const absl::string_view value = variables.Get(kTime); !value.empty()) {
    if (!absl::SimpleAtod(value, &seconds) || !std::isfinite(seconds) || seconds <= 0) {
      return Meaningless(kTime, value, "it must be a number of seconds above 0");
    }
    *warning = absl::Seconds(seconds);
  }
  if (const absl::string_view value = variables.Get(kDisable); !value.empty()) {
    int64_t disable = 0;
    if (!absl::SimpleAtoi(value, &disable)) return Meaningless(kDisable, value, "it must be 0 or 1");
    if (disable > 0) *warning = absl::InfiniteDuration();
  }
  return absl::OkStatus();
}

absl::Status ReadTransport(const Variables& variables, TransportChoice* choice) {
  constexpr char kName[] = "FARANDOLE_TRANSPORT";
  const absl::string_view value = variables.Get(kName);
  if (value.empty() || value == "auto") {
    *choice = TransportChoice::kAuto;
  } else if (value == "shm") {
    *choice = TransportChoice::kShm;
  } else if (value == "tcp") {
    *choice = TransportChoice::kTcp;
  } else {
    return Meaningless(kName, value, "it must be auto, shm or tcp");
  }
  return absl::OkStatus();
}

// The original's rule: one that is shorter than the warning's is ignored, with a word.
absl::Status ReadStallShutdown(const Variables& variables, EngineConfig* engine) {
  constexpr char kName[] = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS";
  const absl::string_view value = variables.Get(kName);
  if (value.empty()) return absl::OkStatus();
  double seconds = 0;
  if (!absl::SimpleAtod(value, &seconds) || !std::isfinite(seconds) || seconds < 0) {
    return Meaningless(kName, value, "it must be a number of seconds, 0 for never");
  }
  if (seconds == 0 || engine->stall_warning == absl::InfiniteDuration()) return absl::OkStatus();
  if (absl::Seconds(seconds) < engine->stall_warning) {
    LOG(WARNING) << kName << "=" << value << " is ignored: it is less than HOROVOD_STALL_CHECK_TIME_SECONDS, "
                 << absl::FormatDuration(engine->stall_warning);
    return absl::OkStatus();
  }
  engine->stall_shutdown = absl::Seconds(seconds);
  return absl::OkStatus();
}

absl::Status ReadGroupFusion(const Variables& variables, bool* apart) {
  constexpr char kName[] = "HOROVOD_DISABLE_GROUP_FUSION";
  const absl::string_view value = variables.Get(kName);
  int64_t disable = 0;
  if (!value.empty() && !absl::SimpleAtoi(value, &disable)) return Meaningless(kName, value, "it must be 0 or 1");
  *apart = disable > 0;
  return absl::OkStatus();
}

// Whether they are addresses of this host shows when they are listened on.
absl::Status ReadDataAddresses(const Variables& variables, std::vector<std::string>* addresses) {
  constexpr char kName[] = "FARANDOLE_DATA_ADDRESS";
  const absl::string_view value = variables.Get(kName);
  if (value.empty()) return absl::OkStatus();
  *addresses = absl::StrSplit(value, ',');
  for (std::string& address : *addresses) {
    absl::StripAsciiWhitespace(&address);
    if (address.empty()) return Meaningless(kName, value, "it must be numeric addresses between commas");
  }
  return absl::OkStatus();
}

absl::Status ReadPortRange(const Variables& variables, PortRange* ports) {
  constexpr char kName[] = "FARANDOLE_PORT_RANGE";
  const absl::string_view value = variables.Get(kName);
  if (value.empty()) return absl::OkStatus();
  const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(value, absl::MaxSplits('-', 1));
  const bool sound = absl::SimpleAtoi(ends.first, &ports->first) && absl::SimpleAtoi(ends.second, &ports->last) &&
                     ports->first >= 1 && ports->first <= ports->last && ports->last <= 65535;
  if (sound) return absl::OkStatus();
  return Meaningless(kName, value, "it must be FIRST-LAST, two ports from 1 to 65535");
}

absl::Status ReadIncarnation(const Variables& variables, Incarnation* incarnation) {
  constexpr char kName[] = "FARANDOLE_WORKER";
  const absl::string_view value = variables.Get(kName);
  uint64_t number = 0;
  if (value.size() != 16 || !absl::SimpleHexAtoi(value, &number) || number == 0) {
    return Meaningless(kName, value,
                       "beside FARANDOLE_AGENT it must be 16 hexadecimal digits; both are set by farandole run for the "
                       "processes that it starts, and are not to be set or removed by hand");
  }
  *incarnation = Incarnation(number);
  return absl::OkStatus();
}

// A launcher that is not ours has started several processes, each of which is about to train alone.
std::string ForeignLauncher(const Variables& variables) {
  for (const auto& [name, launcher] : {std::pair{"OMPI_COMM_WORLD_SIZE", "mpirun"}, {"PMI_SIZE", "mpiexec or srun"}}) {
    int64_t size = 0;
    if (absl::SimpleAtoi(variables.Get(name), &size) && size > 1) return launcher;
  }
  return "";
}

}  // namespace

absl::StatusOr<WorkerEnvironment> ReadWorkerEnvironment(const std::function<const char*(const char*)>& lookup) {
  const Variables variables(lookup);
  WorkerEnvironment environment;
  RETURN_IF_ERROR(ReadFusionThreshold(variables, &environment.engine.fusion_threshold_bytes));
  RETURN_IF_ERROR(ReadStallWarning(variables, &environment.engine.stall_warning));
  RETURN_IF_ERROR(ReadStallShutdown(variables, &environment.engine));
  RETURN_IF_ERROR(ReadGroupFusion(variables, &environment.engine.fuse_groups_apart));
  RETURN_IF_ERROR(ReadTransport(variables, &environment.transport));
  RETURN_IF_ERROR(ReadDataAddresses(variables, &environment.data_addresses));
  RETURN_IF_ERROR(ReadPortRange(variables, &environment.ports));
  environment.agent = std::string(variables.Get("FARANDOLE_AGENT"));
  if (environment.agent.empty()) {
    environment.foreign_launcher = ForeignLauncher(variables);
    return environment;
  }
  RETURN_IF_ERROR(ReadIncarnation(variables, &environment.incarnation));
  return environment;
}

}  // namespace farandole
