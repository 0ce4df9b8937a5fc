#include "launcher/job_plan.h"

#include <limits.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "driver/core/rank_assignment.h"
#include "launcher/cli/env_names.h"
#include "launcher/plan/launch_tree.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr int kDirectHosts = 32;  // connections that the launcher makes itself
constexpr int kHelpedByOne = 8;   // hosts that one agent helps to reach

absl::StatusOr<std::string> WorkingDirectory() {
  char folder[PATH_MAX];
  if (::getcwd(folder, sizeof folder) == nullptr) {
    return absl::NotFoundError("the folder that this was started in is gone");
  }
  return std::string(folder);
}

absl::Status LookUp(const LaunchRequest& request, JobPlan* plan) {
  std::vector<std::string> names;
  for (const HostSpec& host : request.hosts) {
    names.push_back(host.name);
    plan->specs[host.name] = host;
  }
  ASSIGN_OR_RETURN(plan->hosts, LookUpHosts(names));
  for (const auto& [name, found] : plan->hosts) plan->resolved[name] = {found.local, found.addresses};
  return absl::OkStatus();
}

JobEnvironment EnvironmentOf(const LaunchRequest& request, std::vector<std::string> inherited) {
  JobEnvironment environment;
  environment.inherited = std::move(inherited);
  environment.worker_variables = request.worker_variables;
  environment.given = request.given_variables;
  environment.denied = request.denied_variables;
  if (request.port_range) {
    environment.worker_variables.push_back(
        absl::StrCat(env::kPortRange, "=", request.port_range->first, "-", request.port_range->last));
  }
  return environment;
}

// How many hosts the launcher connects to itself.
absl::StatusOr<int> DirectHosts(const std::vector<std::string>& environment) {
  const std::string prefix = absl::StrCat(env::kDirectHosts, "=");
  for (const std::string& variable : environment) {
    if (!absl::StartsWith(variable, prefix)) continue;
    int hosts = 0;
    if (absl::SimpleAtoi(variable.substr(prefix.size()), &hosts) && hosts >= 1) return hosts;
    return absl::InvalidArgumentError(absl::StrCat(variable, " is no number from 1 on"));
  }
  return kDirectHosts;
}

// For remote hosts in order of their first rank. OpenSSH makes its connections itself.
std::map<std::string, std::string> ReachedThrough(const LaunchRequest& request, const std::vector<std::string>& remote,
                                                  int direct_hosts) {
  std::map<std::string, std::string> routes;
  if (request.ssh.backend != SshOptions::Backend::kLibssh) return routes;
  const int count = static_cast<int>(remote.size());
  const LaunchTree tree(count, direct_hosts, kHelpedByOne);
  for (int host = 0; host < count; ++host) {
    const int via = tree.ReachedBy(host);
    if (via != LaunchTree::kLauncher) routes[remote[host]] = remote[via];
  }
  return routes;
}

}  // namespace

absl::StatusOr<JobPlan> MakeJobPlan(const LaunchRequest& request, std::vector<std::string> environment) {
  JobPlan plan;
  ASSIGN_OR_RETURN(plan.config, MakeDriverConfig(request));
  ASSIGN_OR_RETURN(plan.working_directory, WorkingDirectory());
  RETURN_IF_ERROR(LookUp(request, &plan));
  bool any_local = false;
  std::vector<std::string> remote;
  std::set<std::string> seen;
  for (const RankedSlot& ranked : AssignRanks(plan.config.hosts, plan.config.np)) {
    const std::string& host = ranked.slot.host;
    (plan.IsRemote(host) ? plan.any_remote : any_local) = true;
    if (plan.IsRemote(host) && seen.insert(host).second) remote.push_back(host);
  }
  ASSIGN_OR_RETURN(const int direct_hosts, DirectHosts(environment));
  plan.reached_through = ReachedThrough(request, remote, direct_hosts);
  plan.environments = std::make_shared<WorkerEnvironments>(EnvironmentOf(request, std::move(environment)));
  RETURN_IF_ERROR(plan.environments->CheckLimits(any_local, plan.any_remote));
  plan.notes = request.notes;
  for (std::string& note : SameMachineWarnings(plan.config, plan.resolved)) plan.notes.push_back(std::move(note));
  for (std::string& note : UnusedSshNotes(request.hosts, plan.resolved)) plan.notes.push_back(std::move(note));
  return plan;
}

DryRunInputs ForDryRun(const LaunchRequest& request, const JobPlan& plan) {
  DryRunInputs inputs;
  inputs.request = &request;
  inputs.config = plan.config;
  inputs.resolved = plan.resolved;
  inputs.working_directory = plan.working_directory;
  inputs.local_names = plan.environments->Names(false);
  inputs.remote_names = plan.environments->Names(true);
  inputs.notes = plan.notes;
  return inputs;
}

}  // namespace farandole
