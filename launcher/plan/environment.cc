#include "launcher/plan/environment.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "launcher/cli/env_names.h"

namespace farandole {

std::vector<std::string> WorkerEnvironment(const JobEnvironment& job, const std::string& host,
                                           const Placement& placement) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : job.inherited) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  for (const char* name : {env::kAgent, env::kWorker, env::kDataAddress}) variables.erase(name);

  for (const char* name : {env::kGlooInterface, env::kNcclInterface}) {
    if (!job.interface.empty()) variables.emplace(name, job.interface);
  }

  variables[env::kHostname] = host;
  variables[env::kRank] = absl::StrCat(placement.rank);
  variables[env::kSize] = absl::StrCat(placement.size);
  variables[env::kLocalRank] = absl::StrCat(placement.local_rank);
  variables[env::kLocalSize] = absl::StrCat(placement.local_size);
  variables[env::kCrossRank] = absl::StrCat(placement.cross_rank);
  variables[env::kCrossSize] = absl::StrCat(placement.cross_size);
  variables[env::kController] = "gloo";
  variables[env::kCpuOperations] = "gloo";
  variables[env::kPythonUnbuffered] = "1";  // else lines come late, and the last ones of a crash never

  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

}  // namespace farandole
