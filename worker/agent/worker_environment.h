#pragma once

#include <string>
#include <vector>

#include "tools/base/ids.h"

namespace farandole {

// What an agent adds to a worker's environment, as NAME=VALUE: where the worker's library finds the agent, who it is,
// and the address that it binds its data listener to.
std::vector<std::string> WorkerVariables(Incarnation worker, const std::string& agent_address,
                                         const std::string& data_address);

// `environment` with `variables` in place of all that it has under their names. The rest is kept byte for byte and in
// order.
std::vector<std::string> WithVariables(std::vector<std::string> environment, std::vector<std::string> variables);

}  // namespace farandole
