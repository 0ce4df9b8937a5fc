#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace farandole {

// The contents of a file that a person named. Errors: of the system, with the path; OutOfRange: larger than 16 MiB,
// which nothing that a person writes is.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace farandole
