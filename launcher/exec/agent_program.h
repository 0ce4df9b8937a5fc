#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace farandole {

// The agent's program, as hosts get it: read once, and packed once, when the first host needs it. Thread-safe.
class AgentProgram {
 public:
  // Errors: of reading the file, with its path.
  static absl::StatusOr<std::unique_ptr<AgentProgram>> Load(const std::string& path);
  virtual ~AgentProgram() = default;

  virtual const std::string& hash() const = 0;  // SHA-256 of the content, in hex
  virtual const std::string& bytes() const = 0;
  virtual const std::string& machine() const = 0;  // as `uname -m` says it; empty: any, it is a script
  virtual const std::string& packed() = 0;         // by gzip
};

}  // namespace farandole
