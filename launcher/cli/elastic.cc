#include "launcher/cli/elastic.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/hosts.h"
#include "launcher/cli/numbers.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr int kMostSeconds = 10'000'000;  // four months
constexpr int kMostResets = 1'000'000'000;
constexpr int kLongestCooldown = 3600;

absl::Status Contradiction(const Setting& setting, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(setting.origin, " ", setting.value, ": ", what));
}

absl::Status ReadInt(const Settings& settings, absl::string_view name, int least, int most, absl::optional<int>* out) {
  const Setting* const setting = settings.Find(name);
  if (setting == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(*out, WholeNumber(*setting, least, most));
  return absl::OkStatus();
}

absl::Status ReadCooldown(const Settings& settings, absl::optional<ElasticRequest::Cooldown>* out) {
  const Setting* const setting = settings.Find("--blacklist-cooldown-range");
  if (setting == nullptr) return absl::OkStatus();
  const std::pair<std::string, std::string> values = absl::StrSplit(setting->value, absl::MaxSplits(' ', 1));
  ASSIGN_OR_RETURN(const int least, WholeNumber({values.first, setting->origin}, 1, kLongestCooldown));
  ASSIGN_OR_RETURN(const int most, WholeNumber({values.second, setting->origin}, 1, kLongestCooldown));
  if (least > most) return Contradiction(*setting, "the first is more than the second");
  *out = ElasticRequest::Cooldown{absl::Seconds(least), absl::Seconds(most)};
  return absl::OkStatus();
}

absl::Status CheckSizes(const Settings& settings, int np, const ElasticRequest& elastic) {
  const Setting *const min_np = settings.Find("--min-num-proc"), *const max_np = settings.Find("--max-num-proc");
  if (min_np != nullptr && elastic.min_np > np) {
    return Contradiction(*min_np, absl::StrCat("more than -np ", np, ", with which the job starts"));
  }
  if (max_np != nullptr && *elastic.max_np < np) {
    return Contradiction(*max_np, absl::StrCat("less than -np ", np, ", with which the job starts"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<absl::optional<ElasticRequest>> ParseElastic(const Settings& settings, int np,
                                                            std::vector<std::string>* notes) {
  ElasticRequest elastic;
  absl::optional<int> min_np, timeout;
  RETURN_IF_ERROR(ReadInt(settings, "--min-num-proc", 1, kMaxSlots, &min_np));
  RETURN_IF_ERROR(ReadInt(settings, "--max-num-proc", 1, kMaxSlots, &elastic.max_np));
  RETURN_IF_ERROR(ReadInt(settings, "--slots-per-host", 1, kMaxSlots, &elastic.slots_per_host));
  RETURN_IF_ERROR(ReadInt(settings, "--elastic-timeout", 1, kMostSeconds, &timeout));
  RETURN_IF_ERROR(ReadInt(settings, "--reset-limit", 0, kMostResets, &elastic.reset_limit));
  RETURN_IF_ERROR(ReadCooldown(settings, &elastic.cooldown));
  elastic.discovery_script = settings.Value("--host-discovery-script");

  if (!min_np && elastic.discovery_script.empty()) {
    for (const char* name :
         {"--max-num-proc", "--slots-per-host", "--elastic-timeout", "--reset-limit", "--blacklist-cooldown-range"}) {
      const Setting* const setting = settings.Find(name);
      if (setting == nullptr) continue;
      notes->push_back(absl::StrCat(setting->origin,
                                    ": means nothing without --min-np or --host-discovery-script; "
                                    "ignored, and the job has a fixed size"));
    }
    return absl::optional<ElasticRequest>();
  }
  elastic.min_np = min_np.value_or(np);
  if (timeout) elastic.timeout = absl::Seconds(*timeout);
  RETURN_IF_ERROR(CheckSizes(settings, np, elastic));
  return absl::optional<ElasticRequest>(std::move(elastic));
}

}  // namespace farandole
