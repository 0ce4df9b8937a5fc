#include "driver/core/agent_table.h"

#include <algorithm>
#include <string>

#include "tools/base/check.h"

namespace farandole {
namespace {

struct AgentMove {
  AgentState from, to;
  const char* meaning;
};

// Every legal move of an agent.
constexpr AgentMove kAgentMoves[] = {
    {AgentState::kStarting, AgentState::kReady, "reported to the driver"},
    {AgentState::kStarting, AgentState::kEnding, "the job ended first"},
    {AgentState::kStarting, AgentState::kGone, "could not be started, or not in time"},
    {AgentState::kReady, AgentState::kEnding, "was told to end"},
    {AgentState::kReady, AgentState::kGone, "was lost"},
    {AgentState::kEnding, AgentState::kGone, "ended, was lost, or overran its time"},
};

}  // namespace

AgentRecord* AgentTable::FindHost(absl::string_view host) {
  const auto it =
      std::find_if(agents_.begin(), agents_.end(), [&](const AgentRecord& agent) { return agent.host == host; });
  return it == agents_.end() ? nullptr : &*it;
}

const AgentRecord* AgentTable::FindHost(absl::string_view host) const {
  return const_cast<AgentTable*>(this)->FindHost(host);
}

AgentRecord* AgentTable::FindLive(absl::string_view host, Incarnation incarnation) {
  AgentRecord* agent = FindHost(host);
  const bool live = agent != nullptr && agent->incarnation == incarnation && agent->state != AgentState::kGone;
  return live ? agent : nullptr;
}

void AgentTable::Move(AgentRecord* agent, AgentState to) {
  const bool legal = std::any_of(std::begin(kAgentMoves), std::end(kAgentMoves),
                                 [&](const AgentMove& move) { return move.from == agent->state && move.to == to; });
  CHECK(legal) << "agent of host " << agent->host << ": " << ToString(agent->state) << " -> " << ToString(to);
  agent->state = to;
  if (to == AgentState::kGone) agent->deadline = Instant::Infinite();
}

bool AgentTable::All(AgentState state) const {
  return std::all_of(agents_.begin(), agents_.end(), [&](const AgentRecord& agent) { return agent.state == state; });
}

Instant AgentTable::NextDeadline() const {
  Instant next = Instant::Infinite();
  for (const AgentRecord& agent : agents_) next = std::min(next, agent.deadline);
  return next;
}

void AgentTable::ShiftDeadlines(absl::Duration by) {
  for (AgentRecord& agent : agents_) agent.deadline = agent.deadline + by;
}

}  // namespace farandole
