#include "launcher/plan/launch_plan.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace farandole {

absl::StatusOr<DriverConfig> MakeDriverConfig(const LaunchRequest& request, const IsLocalHostFunction& is_local) {
  DriverConfig config;
  config.np = request.np;
  if (request.start_timeout) config.start_timeout = *request.start_timeout;
  for (const HostSpec& host : request.hosts) {
    const absl::StatusOr<bool> local = is_local(host.name);
    if (!local.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("host ", host.name, ": ", local.status().message()));
    }
    if (!*local) {
      return absl::UnimplementedError(
          absl::StrCat("host ", host.name,
                       " is another machine; this version starts jobs on this one only (agents over "
                       "ssh come in a later version). For all processes here: -H localhost:",
                       request.np));
    }
    config.hosts.push_back({host.name, host.slots});
  }
  const std::vector<std::string> problems = config.Validate();
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "; "));
  return config;
}

}  // namespace farandole
