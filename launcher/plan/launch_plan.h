#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "driver/core/driver_config.h"
#include "launcher/cli/launch_request.h"

namespace farandole {

// What is known of a host's name on this machine before anything starts.
struct ResolvedHost {
  bool local = false;                  // this machine: its agent is a child process; else ssh
  std::vector<std::string> addresses;  // numeric; none: the name means nothing here (ssh may know better)
};
using ResolvedHosts = std::map<std::string, ResolvedHost>;  // by the name in the list

// The driver's configuration for a request: hosts in the order of the user with their slots.
//
// Errors (nothing can be started): InvalidArgument: all problems of the configuration; Unimplemented: an elastic job.
absl::StatusOr<DriverConfig> MakeDriverConfig(const LaunchRequest& request);

// A line for each machine that has workers under two names or more: device indices come from local ranks, which each
// name counts by itself. Of an address that many machines have alike (loopback) only local hosts are judged.
std::vector<std::string> SameMachineWarnings(const DriverConfig& config, const ResolvedHosts& resolved);

// A line for each host of this machine with a user or a port for ssh, which is not used to get here.
std::vector<std::string> UnusedSshNotes(absl::Span<const HostSpec> hosts, const ResolvedHosts& resolved);

}  // namespace farandole
