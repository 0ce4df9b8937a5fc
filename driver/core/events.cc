// What an event changes in the tables. No decisions: those are in reconcile.cc.

#include "driver/core/events.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "driver/core/core_state.h"
#include "driver/core/words.h"
#include "tools/base/check.h"

namespace farandole {

// A gap much longer than any wait that NextDeadline() asks for: the driver was stopped, not the agents. What they sent
// meanwhile is still on its way to us, so nobody has overrun anything.
void DriverCore::State::Advance(Instant to) {
  CHECK(to >= now) << "time went back from " << now << " to " << to;
  const absl::Duration gap = to - now;
  if (gap > config.lost_after / 2) {
    agents.ShiftDeadlines(gap);
    workers.ShiftDeadlines(gap);
  }
  now = to;
}

void DriverCore::State::Apply(const Event& event) {
  std::visit([this](const auto& one) { this->On(one); }, event);
}

AgentRecord* DriverCore::State::Admit(const std::string& host, Incarnation incarnation) {
  AgentRecord* agent = agents.FindLive(host, incarnation);
  if (agent == nullptr) {
    Drop();
    return nullptr;
  }
  if (agent->state == AgentState::kReady) agent->deadline = now + config.lost_after;
  return agent;
}

WorkerRecord* DriverCore::State::Admit(const WorkerId& id) {
  WorkerRecord* worker = workers.FindLive(id);
  if (worker == nullptr) {
    Drop();
    return nullptr;
  }
  const AgentRecord* agent = agents.FindHost(id.slot.host);
  return Admit(agent->host, agent->incarnation) == nullptr ? nullptr : worker;
}

void DriverCore::State::On(const AgentProgress& event) {
  AgentRecord* agent = Admit(event.host, event.incarnation);
  if (agent == nullptr) return;
  if (agent->state != AgentState::kStarting) return Drop();  // the agent itself was faster, or it was told to end
  // A new attempt begins again from the first step. Until it gets further than the last one, why that failed is what a
  // person wants to see.
  if (event.note.empty() && event.step <= agent->step && !agent->note.empty()) return;
  agent->step = event.step;
  agent->note = event.note;
}

void DriverCore::State::On(const AgentReady& event) {
  AgentRecord* agent = Admit(event.host, event.incarnation);
  if (agent == nullptr) return;
  if (agent->state != AgentState::kStarting) return Drop();  // repeated, or too late: it was told to end
  agents.Move(agent, AgentState::kReady);
  agent->step = HostStep::kWorkers;
  agent->note.clear();
  agent->deadline = now + config.lost_after;
}

void DriverCore::State::On(const AgentHeard& event) { Admit(event.host, event.incarnation); }

void DriverCore::State::On(const AgentEnding& event) {
  AgentRecord* agent = Admit(event.host, event.incarnation);
  if (agent == nullptr || agent->state != AgentState::kReady) return;
  agent->loss = absl::StrCat("host ", agent->host, ": its agent ends: ", event.reason);
}

void DriverCore::State::On(const AgentFailed& event) {
  if (AgentRecord* agent = Admit(event.host, event.incarnation)) LoseAgent(agent, event.reason);
}

void DriverCore::State::On(const AgentEnded& event) {
  AgentRecord* agent = Admit(event.host, event.incarnation);
  if (agent == nullptr) return;
  if (agent->state == AgentState::kEnding) {
    agents.Move(agent, AgentState::kGone);
  } else {
    LoseAgent(agent, "it ended without having been told to");
  }
}

void DriverCore::State::On(const WorkerStarted& event) {
  WorkerRecord* worker = Admit(event.worker);
  if (worker == nullptr) return;
  if (worker->process_started) return Drop();
  worker->process_started = true;
}

void DriverCore::State::On(const WorkerStartFailed& event) {
  WorkerRecord* worker = Admit(event.worker);
  if (worker == nullptr) return;
  if (worker->process_started) return Drop();  // contradicts what is known
  EndWorker(worker, ExitStatus{127, 0}, absl::StrCat(event.what, ": ", ErrorInWords(event.error)));
}

void DriverCore::State::On(const WorkerJoined& event) {
  WorkerRecord* worker = Admit(event.worker);
  if (worker == nullptr) return;
  // Below: repeated or overtaken, and answered long ago. Above: nobody has given out such a generation.
  if (event.after != worker->generation) return Drop();
  worker->process_started = true;
  worker->joined = true;
  worker->endpoint = event.endpoint;
  if (worker->told_to_end || worker->state == WorkerState::kReady) return;
  // It waits for a newer generation, so it has left the one it was in, whether or not that was heard.
  if (worker->state == WorkerState::kRunning) workers.Move(worker, WorkerState::kLeaving);
  workers.Move(worker, WorkerState::kReady);
  worker->waits_since = now;
}

void DriverCore::State::On(const WorkerLeft& event) {
  WorkerRecord* worker = Admit(event.worker);
  if (worker == nullptr) return;
  if (worker->state != WorkerState::kRunning || event.generation != worker->generation) return Drop();
  workers.Move(worker, WorkerState::kLeaving);
}

void DriverCore::State::On(const WorkerSawLoss& event) {
  WorkerRecord* worker = Admit(event.worker);
  if (worker == nullptr) return;
  if (event.generation != worker->generation) return Drop();
  worker->saw_loss = true;
}

void DriverCore::State::On(const WorkerExited& event) {
  WorkerRecord* worker = Admit(event.worker);
  if (worker == nullptr) return;
  worker->process_started = true;
  worker->out_of_memory = event.out_of_memory;
  EndWorker(worker, event.status, "");
}

void DriverCore::State::On(const Interrupted& event) {
  if (over()) return Drop();
  if (interrupts++ == 0) first_interrupt = event.signal;
}

void DriverCore::State::On(const OutputHeld&) {
  if (interrupts >= 2) return;  // in a hurry: the rest of the output is given up
  for (AgentRecord& agent : agents.all()) {
    if (agent.state == AgentState::kEnding) agent.deadline = now + config.end_timeout;
  }
}

void DriverCore::State::EndWorker(WorkerRecord* worker, const ExitStatus& status, const std::string& what) {
  EndFacts facts;
  facts.status = status;
  facts.told_to_end = worker->told_to_end;
  facts.saw_loss = worker->saw_loss;
  facts.job_is_ending = ending();
  facts.job_has_first_failure = ending() && verdict->has_first_failure;
  worker->outcome = JudgeEnd(facts);
  worker->exit = status;
  worker->ended_at = now;
  worker->what = what;
  workers.Move(worker, WorkerState::kGone);
}

void DriverCore::State::LoseAgent(AgentRecord* agent, const std::string& what_came_back) {
  std::vector<int> lost_ranks;
  for (WorkerRecord& worker : workers.all()) {
    if (!worker.live() || worker.id.slot.host != agent->host) continue;
    lost_ranks.push_back(worker.placement.rank);
    worker.outcome = Outcome::kLost;
    workers.Move(&worker, WorkerState::kGone);
  }
  if (agent->state == AgentState::kStarting) {
    agent->loss =
        absl::StrCat("host ", agent->host, " failed at step \"", ToString(agent->step), "\": ", what_came_back);
  } else if (phase == JobPhase::kWaiting) {
    agent->loss = absl::StrCat("host ", agent->host, ": its agent was lost before the job began: ", what_came_back);
  } else if (!lost_ranks.empty()) {
    agent->loss = absl::StrCat("host ", agent->host, ": its agent was lost, and ", RanksInWords(lost_ranks),
                               " with it: ", what_came_back);
  }
  agent->must_be_forced = agent->state != AgentState::kEnding;
  agents.Move(agent, AgentState::kGone);
}

}  // namespace farandole
