#include "worker/agent/worker_environment.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace farandole {

std::vector<std::string> WorkerVariables(Incarnation worker, const std::string& agent_address,
                                         const std::string& data_addresses) {
  return {absl::StrCat("FARANDOLE_AGENT=", agent_address),
          absl::StrCat("FARANDOLE_WORKER=", absl::Hex(worker.value(), absl::kZeroPad16)),
          absl::StrCat("FARANDOLE_DATA_ADDRESS=", data_addresses)};
}

std::string ResultVariable(int fd) { return absl::StrCat("FARANDOLE_RESULT_FD=", fd); }

std::vector<std::string> WithVariables(std::vector<std::string> environment, std::vector<std::string> variables) {
  const auto replaced = [&variables](const std::string& old) {
    return std::any_of(variables.begin(), variables.end(), [&old](const std::string& variable) {
      return absl::StartsWith(old, absl::string_view(variable).substr(0, variable.find('=') + 1));
    });
  };
  environment.erase(std::remove_if(environment.begin(), environment.end(), replaced), environment.end());
  environment.insert(environment.end(), std::make_move_iterator(variables.begin()),
                     std::make_move_iterator(variables.end()));
  return environment;
}

}  // namespace farandole
