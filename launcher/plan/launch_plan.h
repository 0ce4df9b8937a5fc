#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "driver/core/driver_config.h"
#include "launcher/cli/command_line.h"

namespace farandole {

// Whether a host's name means this machine. Errors: the name cannot be looked up.
using IsLocalHostFunction = std::function<absl::StatusOr<bool>(const std::string& host)>;

// The driver's configuration for a request. Every host of the list is looked up, also one that will stay empty: a name
// with a typing mistake is told before anything starts.
//
// Errors (nothing can be started): InvalidArgument: a host cannot be looked up; Unimplemented: a host is another
// machine.
absl::StatusOr<DriverConfig> MakeDriverConfig(const LaunchRequest& request, const IsLocalHostFunction& is_local);

}  // namespace farandole
