#pragma once

#include <string>
#include <vector>

namespace farandole {

// What to execute for one worker; bytes reach execve unchanged.
struct WorkerCommand {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=VALUE
  std::string working_directory;         // absolute
};

}  // namespace farandole
