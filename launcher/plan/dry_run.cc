#include "launcher/plan/dry_run.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "driver/core/rank_assignment.h"
#include "launcher/cli/quote.h"
#include "launcher/plan/launch_tree.h"
#include "nlohmann/json.hpp"

namespace farandole {
namespace {

struct PlannedHost {
  const HostSpec* spec = nullptr;
  ResolvedHost resolved;
  int processes = 0;
  int ssh_port = 0;        // its own, or that of all
  std::string reached_by;  // empty: from here

  const char* Start() const { return processes == 0 ? "none" : resolved.local ? "local" : "ssh"; }
};

struct Planned {
  std::vector<PlannedHost> hosts;
  std::vector<RankedSlot> ranks;
};

Planned MakePlan(const DryRunInputs& inputs) {
  Planned plan;
  plan.ranks = AssignRanks(inputs.config.hosts, inputs.config.np);
  std::map<std::string, int> processes;
  for (const RankedSlot& rank : plan.ranks) ++processes[rank.slot.host];

  std::vector<size_t> over_ssh;
  for (const HostSpec& spec : inputs.request->hosts) {
    PlannedHost host;
    host.spec = &spec;
    const auto resolved = inputs.resolved.find(spec.name);
    if (resolved != inputs.resolved.end()) host.resolved = resolved->second;
    const auto used = processes.find(spec.name);
    host.processes = used == processes.end() ? 0 : used->second;
    host.ssh_port = spec.ssh_port != 0 ? spec.ssh_port : inputs.request->ssh.port;
    if (host.processes > 0 && !host.resolved.local) over_ssh.push_back(plan.hosts.size());
    plan.hosts.push_back(std::move(host));
  }
  const LaunchTree tree(static_cast<int>(over_ssh.size()), inputs.direct_limit, inputs.fanout);
  for (int i = 0; i < tree.size(); ++i) {
    const int by = tree.ReachedBy(i);
    if (by != LaunchTree::kLauncher) plan.hosts[over_ssh[i]].reached_by = plan.hosts[over_ssh[by]].spec->name;
  }
  return plan;
}

// A word as a shell would need it; only to be read.
std::string ShellWord(const std::string& word) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  return !word.empty() && word.find_first_not_of(kPlain) == std::string::npos ? word : Quote(word);
}

std::string Joined(const std::vector<std::string>& words) { return words.empty() ? "-" : absl::StrJoin(words, " "); }

std::string Plural(size_t count, absl::string_view one, absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

void AppendHosts(const Planned& plan, std::string* out) {
  absl::StrAppend(out, "\nhosts:\n");
  for (const PlannedHost& host : plan.hosts) {
    absl::StrAppend(out, "  ", host.spec->name, "  ", Plural(host.processes, "process", "processes"), " in ",
                    Plural(host.spec->slots, "slot", "slots"));
    if (host.processes > 0) absl::StrAppend(out, ", ", host.resolved.local ? "this machine" : "over ssh");
    if (host.processes > 0 && !host.resolved.local) {
      if (!host.spec->user.empty()) absl::StrAppend(out, " as ", host.spec->user);
      if (host.ssh_port != 0) absl::StrAppend(out, " at port ", host.ssh_port);
      if (!host.reached_by.empty()) absl::StrAppend(out, " through ", host.reached_by);
    }
    if (host.resolved.addresses.empty()) {
      absl::StrAppend(out, ", no address known here");
    } else {
      absl::StrAppend(out, ", ", absl::StrJoin(host.resolved.addresses, " "));
    }
    absl::StrAppend(out, "\n");
  }
}

void AppendRanks(const Planned& plan, std::string* out) {
  absl::StrAppend(out, "\nranks (rank, host, local rank of how many, cross rank of how many):\n");
  for (const RankedSlot& ranked : plan.ranks) {
    const Placement& place = ranked.placement;
    absl::StrAppend(out, "  ", place.rank, "  ", ranked.slot.host, "  ", place.local_rank, " of ", place.local_size,
                    "  ", place.cross_rank, " of ", place.cross_size, "\n");
  }
}

void AppendNetwork(const LaunchRequest& request, std::string* out) {
  absl::StrAppend(out, "\nnetwork:\n  addresses: ");
  if (request.networks.empty()) {
    absl::StrAppend(out, "whichever of a host's the others reach");
  } else {
    absl::StrAppend(out, absl::StrJoin(request.networks.rules, ", ", [](std::string* text, const auto& rule) {
                      absl::StrAppend(text, rule.host, rule.host.empty() ? "" : "=", rule.wanted);
                    }));
  }
  absl::StrAppend(out, "\n  ports: ");
  if (request.port_range) {
    absl::StrAppend(out, request.port_range->first, " to ", request.port_range->last, "\n");
  } else {
    absl::StrAppend(out, "any free ones\n");
  }
}

void AppendNames(absl::string_view where, const EnvironmentNames& names, std::string* out) {
  absl::StrAppend(out, "\nvariables of processes ", where, " (names only):\n  set: ", Joined(names.set),
                  "\n  inherited: ", Joined(names.inherited), "\n  kept home: ", Joined(names.kept_home), "\n");
}

std::string Dump(const nlohmann::json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json NamesJson(const EnvironmentNames& names) {
  return {{"set", names.set}, {"inherited", names.inherited}, {"kept_home", names.kept_home}};
}

nlohmann::json HostJson(const PlannedHost& host) {
  return {
      {"name", host.spec->name},
      {"start", host.Start()},
      {"user", host.spec->user},
      {"ssh_port", host.ssh_port},
      {"slots", host.spec->slots},
      {"processes", host.processes},
      {"addresses", host.resolved.addresses},
      {"reached_by", host.reached_by.empty() ? nlohmann::json() : nlohmann::json(host.reached_by)},
  };
}

// A line by hand: there are many of them, and the library takes a tree of allocations for each.
std::string RankLine(const RankedSlot& ranked) {
  const Placement& place = ranked.placement;
  return absl::StrCat("    {\"rank\": ", place.rank, ", \"host\": ", Dump(ranked.slot.host),
                      ", \"slot\": ", ranked.slot.slot, ", \"local_rank\": ", place.local_rank,
                      ", \"local_size\": ", place.local_size, ", \"cross_rank\": ", place.cross_rank,
                      ", \"cross_size\": ", place.cross_size, "}");
}

nlohmann::json NetworkJson(const LaunchRequest& request) {
  nlohmann::json network = {{"interfaces", nlohmann::json::array()}, {"port_range", nullptr}};
  for (const NetworkChoice::Rule& rule : request.networks.rules) {
    network["interfaces"].push_back(
        {{"host", rule.host.empty() ? nlohmann::json() : nlohmann::json(rule.host)}, {"wanted", rule.wanted}});
  }
  if (request.port_range) network["port_range"] = {request.port_range->first, request.port_range->last};
  return network;
}

}  // namespace

std::string DryRunText(const DryRunInputs& inputs) {
  const LaunchRequest& request = *inputs.request;
  const Planned plan = MakePlan(inputs);
  bool here = false, elsewhere = false;
  size_t used = 0;
  for (const PlannedHost& host : plan.hosts) {
    if (host.processes == 0) continue;
    ++used;
    (host.resolved.local ? here : elsewhere) = true;
  }
  std::string out = absl::StrCat(
      Plural(request.np, "process", "processes"), " on ", Plural(used, "host", "hosts"), ": ",
      absl::StrJoin(request.command, " ",
                    [](std::string* text, const std::string& word) { absl::StrAppend(text, ShellWord(word)); }),
      "\nin ", inputs.working_directory, "\nnothing was started (--dry-run)\n");
  AppendHosts(plan, &out);
  AppendRanks(plan, &out);
  AppendNetwork(request, &out);
  absl::StrAppend(&out, "\ntimes:\n  to start: ", absl::FormatDuration(inputs.config.start_timeout),
                  "\n  from TERM to KILL: ", absl::FormatDuration(inputs.config.grace), "\n");
  if (here) AppendNames("here", inputs.local_names, &out);
  if (elsewhere) AppendNames("elsewhere", inputs.remote_names, &out);
  if (!request.settings.empty()) absl::StrAppend(&out, "\nsettings:\n");
  for (const LaunchRequest::ResolvedSetting& setting : request.settings) {
    absl::StrAppend(&out, "  ", setting.option, " ", ShellWord(setting.value), "  (", setting.origin, ")\n");
  }
  if (!inputs.notes.empty()) absl::StrAppend(&out, "\nnotes:\n");
  for (const std::string& note : inputs.notes) absl::StrAppend(&out, "  ", note, "\n");
  return out;
}

std::string DryRunJson(const DryRunInputs& inputs) {
  const LaunchRequest& request = *inputs.request;
  const Planned plan = MakePlan(inputs);
  nlohmann::json out = {
      {"np", request.np},
      {"command", request.command},
      {"working_directory", inputs.working_directory},
      {"start_timeout_seconds", absl::ToDoubleSeconds(inputs.config.start_timeout)},
      {"grace_seconds", absl::ToDoubleSeconds(inputs.config.grace)},
      {"output_directory", request.output_directory},
      {"instance_directory", request.instance_directory},
      {"hosts", nlohmann::json::array()},
      {"network", NetworkJson(request)},
      {"environment", NamesJson(inputs.local_names)},
      {"settings", nlohmann::json::array()},
      {"notes", inputs.notes},
  };
  out["environment"]["remote"] = NamesJson(inputs.remote_names);
  for (const PlannedHost& host : plan.hosts) out["hosts"].push_back(HostJson(host));
  for (const LaunchRequest::ResolvedSetting& setting : request.settings) {
    out["settings"].push_back({{"option", setting.option}, {"value", setting.value}, {"origin", setting.origin}});
  }
  std::string text = Dump(out, 2);
  text.resize(text.size() - 2);  // "\n}"
  absl::StrAppend(
      &text, ",\n  \"ranks\": [\n",
      absl::StrJoin(plan.ranks, ",\n",
                    [](std::string* line, const RankedSlot& ranked) { absl::StrAppend(line, RankLine(ranked)); }),
      "\n  ]\n}\n");
  return text;
}

}  // namespace farandole
