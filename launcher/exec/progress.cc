#include "launcher/exec/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace farandole {
namespace {

bool WasStarted(const DriverView::Worker& worker) {
  return worker.process_started || worker.state == WorkerState::kGone;
}

}  // namespace

std::string ProgressText(const DriverView& view) {
  const auto hosts = std::count_if(view.agents.begin(), view.agents.end(),
                                   [](const DriverView::Agent& agent) { return agent.incarnation != Incarnation(); });
  const auto agents = std::count_if(view.agents.begin(), view.agents.end(),
                                    [](const DriverView::Agent& agent) { return agent.state == AgentState::kReady; });
  const auto workers = std::count_if(view.workers.begin(), view.workers.end(), WasStarted);
  return absl::StrCat("hosts ", hosts, "/", view.agents.size(), "  agents ", agents, "/", view.agents.size(),
                      "  workers ", workers, "/", view.workers.size());
}

bool IsStarted(const DriverView& view) {
  if (view.phase != JobPhase::kWaiting && view.phase != JobPhase::kForming && view.phase != JobPhase::kRunning)
    return true;
  return !view.workers.empty() && std::all_of(view.workers.begin(), view.workers.end(), WasStarted);
}

}  // namespace farandole
