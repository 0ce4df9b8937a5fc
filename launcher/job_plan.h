#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/core/driver_config.h"
#include "launcher/cli/hosts.h"
#include "launcher/cli/launch_request.h"
#include "launcher/exec/local_hosts.h"
#include "launcher/plan/dry_run.h"
#include "launcher/plan/environment.h"
#include "launcher/plan/launch_plan.h"

namespace farandole {

// What is known of a job before anything of it is made.
struct JobPlan {
  DriverConfig config;
  std::map<std::string, HostSpec> specs;     // by name, as all below
  std::map<std::string, HostAddress> hosts;  // looked up
  ResolvedHosts resolved;                    // the same for the pure parts
  bool any_remote = false;                   // a process will be elsewhere
  // Remote hosts that are reached through another one (launch_tree.h), with that one; the others directly.
  std::map<std::string, std::string> reached_through;
  std::shared_ptr<const WorkerEnvironments> environments;
  std::string working_directory;
  std::vector<std::string> notes;  // the request's and those of the plan

  bool IsRemote(const std::string& host) const { return !hosts.at(host).local; }
};

// Looks the hosts up and checks what can be checked before anything starts. `environment`: NAME=VALUE of this process.
// Blocks as long as the resolver does.
//
// Errors (all are of the request: exit code 2): those of MakeDriverConfig and WorkerEnvironments; NotFound: the working
// folder is gone; InvalidArgument: FARANDOLE_DIRECT_HOSTS is no number.
absl::StatusOr<JobPlan> MakeJobPlan(const LaunchRequest& request, std::vector<std::string> environment);

// For --dry-run.
DryRunInputs ForDryRun(const LaunchRequest& request, const JobPlan& plan);

}  // namespace farandole
