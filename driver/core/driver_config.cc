#include "driver/core/driver_config.h"

#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"

namespace farandole {
namespace {

void CheckHosts(const DriverConfig& config, std::vector<std::string>* problems) {
  if (config.hosts.empty()) problems->push_back("no hosts are given");
  std::set<std::string> names;
  int64_t slots = 0;
  for (const HostSlots& host : config.hosts) {
    if (host.name.empty()) problems->push_back("a host has no name");
    if (!names.insert(host.name).second) problems->push_back(absl::StrCat("host ", host.name, " is listed twice"));
    if (host.slots < 1) {
      problems->push_back(absl::StrCat("host ", host.name, " has ", host.slots, " slots; at least 1 is needed"));
    } else {
      slots += host.slots;
    }
  }
  if (config.np > slots) {
    problems->push_back(absl::StrCat(config.np, " processes are more than the ", slots, " slots of all hosts"));
  }
}

void CheckPositive(absl::Duration value, const char* name, std::vector<std::string>* problems) {
  if (value > absl::ZeroDuration()) return;
  problems->push_back(absl::StrCat(name, " is ", absl::FormatDuration(value), "; it must be longer than 0"));
}

}  // namespace

std::vector<std::string> DriverConfig::Validate() const {
  std::vector<std::string> problems;
  if (np < 1) problems.push_back(absl::StrCat("the number of processes is ", np, "; at least 1 is needed"));
  CheckHosts(*this, &problems);
  if (grace < absl::ZeroDuration()) {
    problems.push_back(absl::StrCat("grace is ", absl::FormatDuration(grace), "; it cannot be negative"));
  }
  CheckPositive(start_timeout, "start_timeout", &problems);
  CheckPositive(join_timeout, "join_timeout", &problems);
  CheckPositive(heartbeat_interval, "heartbeat_interval", &problems);
  CheckPositive(lost_after, "lost_after", &problems);
  CheckPositive(blame_wait, "blame_wait", &problems);
  CheckPositive(end_timeout, "end_timeout", &problems);
  if (lost_after < 4 * heartbeat_interval) {
    problems.push_back(absl::StrCat("lost_after is ", absl::FormatDuration(lost_after),
                                    "; it must be at least four times heartbeat_interval, ",
                                    absl::FormatDuration(heartbeat_interval)));
  }
  return problems;
}

}  // namespace farandole
