#include "launcher/plan/environment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/cli/env_names.h"
#include "launcher/cli/quote.h"
#include "launcher/cli/variables.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

using Variables = std::map<std::string, std::string>;

Variables Split(const std::vector<std::string>& entries) {
  Variables variables;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return variables;
}

bool IsExported(absl::string_view name) {
  return !absl::StartsWith(name, "BASH_FUNC_") && !absl::StartsWith(name, "OLDPWD") &&
         !absl::StartsWith(name, "_HOROVOD_SECRET_KEY") && !absl::StrContains(name, "CUDA_VISIBLE_DEVICES");
}

bool IsDenied(absl::string_view name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(pattern, name); });
}

// How the original's runtime would be set up, and that lines come at once: else the last ones of a crash never do.
const Variables& ForEveryWorker() {
  static const Variables* const kVariables =
      new Variables{{env::kController, "gloo"}, {env::kCpuOperations, "gloo"}, {env::kPythonUnbuffered, "1"}};
  return *kVariables;
}

void SetPlace(const std::string& host, const Placement& place, Variables* variables) {
  Variables& set = *variables;
  set[env::kHostname] = host;
  set[env::kRank] = absl::StrCat(place.rank);
  set[env::kSize] = absl::StrCat(place.size);
  set[env::kLocalRank] = absl::StrCat(place.local_rank);
  set[env::kLocalSize] = absl::StrCat(place.local_size);
  set[env::kCrossRank] = absl::StrCat(place.cross_rank);
  set[env::kCrossSize] = absl::StrCat(place.cross_size);
}

void SetInterfaces(const WorkerHost& host, Variables* variables) {
  if (host.interfaces.empty()) return;
  const std::pair<const char*, std::string> kTold[] = {{env::kGlooInterface, host.interfaces[0]},
                                                       {env::kNcclInterface, absl::StrJoin(host.interfaces, ",")}};
  for (const auto& [name, value] : kTold) {
    if (host.interfaces_chosen) {
      (*variables)[name] = value;
    } else {
      variables->emplace(name, value);
    }
  }
}

absl::Status CheckSizes(const Variables& variables) {
  for (const auto& [name, value] : variables) {
    const size_t bytes = name.size() + 1 + value.size() + 1;
    if (bytes <= kMaxVariableBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("the variable ", Quote(name), " has ", bytes,
                                                   " bytes with its name, and Linux starts no program with more than ",
                                                   kMaxVariableBytes, " in one; keep it home with --env-deny ",
                                                   Quote(name), ", or put the text into a file"));
  }
  return absl::OkStatus();
}

}  // namespace

WorkerEnvironments::WorkerEnvironments(const JobEnvironment& job) {
  Variables inherited = Split(job.inherited);
  for (const char* name : {env::kAgent, env::kWorker, env::kDataAddress, env::kResultFd, env::kFunctionFolder}) {
    inherited.erase(name);
  }
  Variables set = Split(job.given);
  set.merge(Split(job.worker_variables));  // keeps what is given
  for (const auto& [name, value] : ForEveryWorker()) set.emplace(name, value);

  for (const auto& [name, value] : set) set_.push_back(name);
  local_ = remote_ = set;
  for (const auto& [name, value] : inherited) {
    const bool denied = IsDenied(name, job.denied), travels = !denied && IsExported(name);
    if (set.count(name) > 0) continue;
    (denied ? kept_local_ : inherited_local_).push_back(name);
    (travels ? inherited_remote_ : kept_remote_).push_back(name);
    if (!denied) local_.emplace(name, value);
    if (travels) remote_.emplace(name, value);
  }
}

std::vector<std::string> WorkerEnvironments::For(const WorkerHost& host, const Placement& placement) const {
  Variables own;
  SetPlace(host.name, placement, &own);
  const Variables& base = Base(host.remote);
  for (const char* name : {env::kGlooInterface, env::kNcclInterface}) {
    const auto it = base.find(name);
    if (it != base.end()) own.insert(*it);
  }
  SetInterfaces(host, &own);

  // Both are sorted: one walk, and no copy of the large one.
  std::vector<std::string> entries;
  entries.reserve(base.size() + own.size());
  auto mine = own.begin();
  for (const auto& [name, value] : base) {
    for (; mine != own.end() && mine->first < name; ++mine)
      entries.push_back(absl::StrCat(mine->first, "=", mine->second));
    if (mine != own.end() && mine->first == name) continue;  // comes in its turn
    entries.push_back(absl::StrCat(name, "=", value));
  }
  for (; mine != own.end(); ++mine) entries.push_back(absl::StrCat(mine->first, "=", mine->second));
  return entries;
}

EnvironmentNames WorkerEnvironments::Names(bool remote) const {
  EnvironmentNames names{set_, remote ? inherited_remote_ : inherited_local_, remote ? kept_remote_ : kept_local_};
  for (const char* name :
       {env::kHostname, env::kRank, env::kSize, env::kLocalRank, env::kLocalSize, env::kCrossRank, env::kCrossSize}) {
    names.set.push_back(name);
    names.inherited.erase(std::remove(names.inherited.begin(), names.inherited.end(), name), names.inherited.end());
  }
  // Told where nobody else has.
  for (const char* name : {env::kGlooInterface, env::kNcclInterface}) {
    if (Base(remote).count(name) == 0) names.set.push_back(name);
  }
  std::sort(names.set.begin(), names.set.end());
  return names;
}

absl::Status WorkerEnvironments::CheckLimits(bool any_local, bool any_remote) const {
  if (any_local) {
    RETURN_IF_ERROR(CheckSizes(local_));
  }
  return any_remote ? CheckSizes(remote_) : absl::OkStatus();
}

}  // namespace farandole
