#include "launcher/plan/launch_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "launcher/cli/ip_address.h"

namespace farandole {
namespace {

constexpr size_t kMostNames = 8;  // of one machine, in a warning

const ResolvedHost& Resolved(const ResolvedHosts& resolved, const std::string& name) {
  static const ResolvedHost* const kUnknown = new ResolvedHost();
  const auto it = resolved.find(name);
  return it == resolved.end() ? *kUnknown : it->second;
}

// The names of hosts that have a worker, as ranks are dealt.
std::vector<std::string> HostsInUse(const DriverConfig& config) {
  std::vector<std::string> names;
  int64_t left = config.np;
  for (const HostSlots& host : config.hosts) {
    if (left <= 0) break;
    names.push_back(host.name);
    left -= host.slots;
  }
  return names;
}

// What tells machines apart: this one is one thing, another is any of its addresses.
std::vector<std::string> MarksOf(const ResolvedHost& host) {
  if (host.local) return {"this machine"};
  std::vector<std::string> marks;
  for (const std::string& address : host.addresses) {
    const absl::optional<IpAddress> parsed = ParseIpAddress(address);
    if (parsed && !parsed->IsLoopback() && !parsed->IsLinkLocal() && !parsed->IsUnspecified()) marks.push_back(address);
  }
  return marks;
}

// Which things are one, by what they have in common.
class Union {
 public:
  explicit Union(size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), size_t{0}); }
  size_t Find(size_t at) {
    while (parents_[at] != at) at = parents_[at] = parents_[parents_[at]];
    return at;
  }
  void Join(size_t a, size_t b) {
    const size_t first = Find(a), second = Find(b);
    parents_[std::max(first, second)] = std::min(first, second);
  }

 private:
  std::vector<size_t> parents_;
};

std::string Warning(const std::vector<std::string>& names, const std::string& mark) {
  const absl::Span<const std::string> shown = absl::MakeConstSpan(names).subspan(0, kMostNames);
  return absl::StrCat("hosts ", absl::StrJoin(shown, ", "), names.size() > kMostNames ? ", ..." : "",
                      " are one machine (", mark,
                      "), and each name counts its local ranks from 0: processes of both would take the same GPU. Name "
                      "the machine once, with all its slots, unless its processes choose devices in another way");
}

}  // namespace

absl::StatusOr<DriverConfig> MakeDriverConfig(const LaunchRequest& request) {
  DriverConfig config;
  config.np = request.np;
  if (request.start_timeout) config.start_timeout = *request.start_timeout;
  if (request.grace) config.grace = *request.grace;
  for (const HostSpec& host : request.hosts) config.hosts.push_back({host.name, host.slots});
  if (request.elastic) {
    return absl::UnimplementedError(
        "elastic jobs come in a later version; without --min-np and --host-discovery-script the job starts with a "
        "fixed "
        "size");
  }
  const std::vector<std::string> problems = config.Validate();
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "; "));
  return config;
}

std::vector<std::string> SameMachineWarnings(const DriverConfig& config, const ResolvedHosts& resolved) {
  const std::vector<std::string> hosts = HostsInUse(config);
  Union machines(hosts.size());
  std::map<std::string, size_t> first_with;  // by mark
  std::map<size_t, std::string> shared;      // by host: the mark that it has in common with an earlier one
  for (size_t i = 0; i < hosts.size(); ++i) {
    for (const std::string& mark : MarksOf(Resolved(resolved, hosts[i]))) {
      const auto [it, is_new] = first_with.emplace(mark, i);
      if (is_new || it->second == i) continue;
      machines.Join(it->second, i);
      shared.emplace(i, mark);
    }
  }
  std::map<size_t, std::pair<std::vector<std::string>, std::string>> groups;
  for (size_t i = 0; i < hosts.size(); ++i) {
    auto& [names, mark] = groups[machines.Find(i)];
    names.push_back(hosts[i]);
    if (mark.empty() && shared.count(i) > 0) mark = shared[i];
  }
  std::vector<std::string> warnings;
  for (const auto& [root, group] : groups) {
    if (group.first.size() > 1) warnings.push_back(Warning(group.first, group.second));
  }
  return warnings;
}

std::vector<std::string> UnusedSshNotes(absl::Span<const HostSpec> hosts, const ResolvedHosts& resolved) {
  std::vector<std::string> notes;
  for (const HostSpec& host : hosts) {
    if (!Resolved(resolved, host.name).local || (host.user.empty() && host.ssh_port == 0)) continue;
    notes.push_back(absl::StrCat("host ", host.name, " is this machine: its processes start without ssh, and ",
                                 host.user.empty() ? "its port" : absl::StrCat("the user ", host.user),
                                 " is not used"));
  }
  return notes;
}

}  // namespace farandole
