#include "launcher/cli/variables.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launcher/cli/env_names.h"
#include "launcher/cli/quote.h"

namespace farandole {
namespace {

bool IsSetByLauncher(absl::string_view name) {
  for (absl::string_view set : env::kSetForEveryWorker) {
    if (name == set) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseGivenVariables(
    absl::Span<const Setting> settings,
    const std::function<absl::optional<std::string>(const std::string& name)>& environment) {
  std::map<std::string, std::string> variables;
  for (const Setting& setting : settings) {
    const size_t equals = setting.value.find('=');
    const std::string name = setting.value.substr(0, equals);
    if (name.empty())
      return absl::InvalidArgumentError(absl::StrCat(setting.origin, ": the name before '=' is missing"));
    const auto error = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat(setting.origin, " ", Quote(name), ": ", what));
    };
    if (IsSetByLauncher(name)) return error("the launcher sets it for each process");
    if (equals != std::string::npos) {
      variables[name] = setting.value.substr(equals + 1);
      continue;
    }
    absl::optional<std::string> value = environment(name);
    if (!value) return error("there is no such variable here; write NAME=VALUE, or export it first");
    variables[name] = *std::move(value);
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

absl::StatusOr<std::vector<std::string>> ParseDeniedVariables(absl::Span<const Setting> settings) {
  std::vector<std::string> patterns;
  for (const Setting& setting : settings) {
    if (setting.value.find('=') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(setting.origin, ": a pattern for names has no '='"));
    }
    if (setting.value.find('[') != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(setting.origin, " ", Quote(setting.value), ": only * and ? have a meaning in a pattern"));
    }
    patterns.push_back(setting.value);
  }
  return patterns;
}

bool MatchesPattern(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0, star = absl::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == absl::string_view::npos;
}

}  // namespace farandole
