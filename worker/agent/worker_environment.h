#pragma once

#include <string>
#include <vector>

#include "tools/base/ids.h"

namespace farandole {

// What an agent adds to a worker's environment, as NAME=VALUE: where the worker's library finds the agent, who it is,
// and the addresses, separated by commas, that it binds its data listeners to.
std::vector<std::string> WorkerVariables(Incarnation worker, const std::string& agent_address,
                                         const std::string& data_addresses);

// For one that is to write a result: to which descriptor.
std::string ResultVariable(int fd);

// `environment` with `variables` in place of all that it has under their names. The rest is kept byte for byte and in
// order.
std::vector<std::string> WithVariables(std::vector<std::string> environment, std::vector<std::string> variables);

}  // namespace farandole
