#pragma once

#include <string>
#include <vector>

namespace farandole {

// What to execute for one worker; bytes reach execve unchanged.
struct WorkerCommand {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=VALUE
  std::string working_directory;         // absolute
  // Numeric addresses of its host where it listens for data; empty: where the agent was told at its start.
  std::vector<std::string> data_addresses = {};
  // Whether it is to write a result, to the descriptor that FARANDOLE_RESULT_FD names.
  bool wants_result = false;
};

}  // namespace farandole
