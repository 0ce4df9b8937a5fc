#include "launcher/exec/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "driver/core/host_step.h"

namespace farandole {
namespace {

bool WasStarted(const DriverView::Worker& worker) {
  return worker.process_started || worker.state == WorkerState::kGone;
}

// Of the hosts that are not there yet the first one, and why.
std::string WhatIsMissing(const DriverView& view) {
  const DriverView::Agent* missing = nullptr;
  for (const DriverView::Agent& agent : view.agents) {
    if (agent.state != AgentState::kStarting) continue;
    if (missing == nullptr || (missing->note.empty() && !agent.note.empty())) missing = &agent;
  }
  if (missing == nullptr) return "";
  return absl::StrCat("  (", missing->host, ": ", ToString(missing->step), missing->note.empty() ? "" : ": ",
                      missing->note, ")");
}

}  // namespace

std::string ProgressText(const DriverView& view) {
  const auto hosts = std::count_if(view.agents.begin(), view.agents.end(),
                                   [](const DriverView::Agent& agent) { return agent.step > HostStep::kAuthenticate; });
  const auto agents = std::count_if(view.agents.begin(), view.agents.end(),
                                    [](const DriverView::Agent& agent) { return agent.state == AgentState::kReady; });
  const auto workers = std::count_if(view.workers.begin(), view.workers.end(), WasStarted);
  return absl::StrCat("hosts ", hosts, "/", view.agents.size(), "  agents ", agents, "/", view.agents.size(),
                      "  workers ", workers, "/", view.workers.size(), WhatIsMissing(view));
}

bool IsStarted(const DriverView& view) {
  if (view.phase != JobPhase::kWaiting && view.phase != JobPhase::kForming && view.phase != JobPhase::kRunning)
    return true;
  return !view.workers.empty() && std::all_of(view.workers.begin(), view.workers.end(), WasStarted);
}

}  // namespace farandole
