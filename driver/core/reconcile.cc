// What should be, compared with what is. Everything here can be called at any time and as often as one likes: it looks
// at the tables alone, and what it has asked for is in them.

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/core/core_state.h"
#include "driver/core/words.h"
#include "tools/base/check.h"

namespace farandole {
namespace {

std::string InWords(absl::Duration duration) { return absl::FormatDuration(duration); }

std::string NameOf(const WorkerRecord& worker) {
  return absl::StrCat("rank ", worker.placement.rank, " on host ", worker.id.slot.host);
}

WorkerEnd EndOf(const WorkerRecord& worker) {
  return WorkerEnd{worker.id, worker.placement.rank, worker.exit, worker.what, worker.out_of_memory};
}

// Where a worker that has finished stood when it did.
std::string FinishedBefore(const WorkerRecord& worker) {
  if (worker.generation != Generation()) return "instead of joining the next generation";
  return worker.joined ? "while it waited in init" : "before it called init";
}

}  // namespace

void DriverCore::State::Begin(Actions* actions) {
  for (AgentRecord& agent : agents.all()) {
    agent.deadline = now + config.start_timeout;
    const std::vector<int> ranks =
        workers.Ranks([&](const WorkerRecord& worker) { return worker.id.slot.host == agent.host; });
    actions->push_back(StartAgent{agent.host, agent.incarnation, absl::StrCat("for ", RanksInWords(ranks))});
  }
}

void DriverCore::State::Reconcile(Actions* actions) {
  if (over()) return;
  LoseOverdueAgents();
  GiveUpDeafWorkers();
  if (!ending()) Decide();
  ForceAgents(actions);
  if (ending()) {
    Finish(actions);
  } else {
    Proceed(actions);
  }
}

Instant DriverCore::State::NextDeadline() const {
  if (!started || over()) return Instant::Infinite();
  Instant next = std::min(agents.NextDeadline(), workers.NextDeadline());
  if (!ending()) next = std::min(next, workers.WaitingSince() + config.join_timeout);
  if (const WorkerRecord* victim = workers.FirstVictim(); victim != nullptr) {
    next = std::min(next, victim->ended_at + config.blame_wait);
  }
  if (next.is_infinite()) return next;
  return std::min(next, now + config.lost_after / 4);
}

// ---------------------------------------------------------------------------------------------------------- time

void DriverCore::State::LoseOverdueAgents() {
  for (AgentRecord& agent : agents.all()) {
    if (agent.deadline > now) continue;
    switch (agent.state) {
      case AgentState::kStarting:
        break;  // DecideOnStartTimeout looks at all of them together
      case AgentState::kReady:
        LoseAgent(&agent, absl::StrCat("no sign of life for ", InWords(config.lost_after)));
        break;
      case AgentState::kEnding:
        agent.must_be_forced = true;
        agents.Move(&agent, AgentState::kGone);
        break;
      case AgentState::kGone:
        break;
    }
  }
}

// A process that the kernel cannot end (it waits for a device or a file server) must not hold the job for ever.
void DriverCore::State::GiveUpDeafWorkers() {
  for (WorkerRecord& worker : workers.all()) {
    if (!worker.live() || !worker.killed || worker.deadline > now) continue;
    absl::StrAppend(&verdict->reason, "; ", NameOf(worker), " has not ended ", InWords(config.end_timeout),
                    " after SIGKILL and may still be there");
    worker.outcome = Outcome::kLost;
    workers.Move(&worker, WorkerState::kGone);
  }
}

// ---------------------------------------------------------------------------------------------------------- verdict

void DriverCore::State::Decide() {
  if (DecideOnFailure() || DecideOnLostAgent() || DecideOnVictims()) return;
  if (workers.FirstVictim() != nullptr) return;  // a little patience
  if (DecideOnStartTimeout() || DecideOnGeneration()) return;
  if (interrupts > 0) {
    BeginToEnd(128 + first_interrupt, absl::StrCat("the job was interrupted by ", SignalInWords(first_interrupt)));
  } else if (workers.All(WorkerState::kGone)) {
    BeginToEnd(0, "");
  }
}

bool DriverCore::State::DecideOnFailure() {
  for (WorkerRecord& worker : workers.all()) {
    if (worker.outcome != Outcome::kFirstFailure) continue;
    DecideOn(&worker);
    return true;
  }
  return false;
}

void DriverCore::State::DecideOn(WorkerRecord* first_failure) {
  first_failure->outcome = Outcome::kFirstFailure;
  const std::string how = first_failure->what.empty() ? EndInWords(first_failure->exit)
                                                      : absl::StrCat("could not be executed: ", first_failure->what);
  BeginToEnd(first_failure->exit.shell_code(), absl::StrCat(NameOf(*first_failure), " ", how));
  verdict->has_first_failure = true;
  verdict->first_failure = EndOf(*first_failure);
}

// Whoever failed because of a lost peer, when the peer's own end is waited for no longer.
bool DriverCore::State::DecideOnVictims() {
  WorkerRecord* first = workers.FirstVictim();
  if (first == nullptr) return false;
  const bool wait = first->ended_at + config.blame_wait > now && workers.AnyLive() && interrupts == 0;
  if (!wait) DecideOn(first);
  return !wait;
}

bool DriverCore::State::DecideOnLostAgent() {
  for (const AgentRecord& agent : agents.all()) {
    if (agent.loss.empty()) continue;
    BeginToEnd(1, agent.loss);
    return true;
  }
  return false;
}

bool DriverCore::State::DecideOnStartTimeout() {
  std::vector<HostStanding> not_up;
  for (const AgentRecord& agent : agents.all()) {
    if (agent.state != AgentState::kStarting || agent.deadline > now) continue;
    not_up.push_back({agent.host, agent.step, agent.note});
  }
  if (not_up.empty()) return false;
  const size_t all = agents.all().size();
  const std::string who =
      all == 1 ? absl::StrCat("host ", not_up[0].host, " was")
               : absl::StrCat(not_up.size(), " of ", all, not_up.size() == 1 ? " hosts was" : " hosts were");
  BeginToEnd(1, absl::StrCat(who, " not ready within ", InWords(config.start_timeout),
                             "; --start-timeout gives slow hosts more time"));
  verdict->not_up = std::move(not_up);
  return true;
}

// Whether the generation that workers wait for can still come.
bool DriverCore::State::DecideOnGeneration() {
  if (!workers.Any(WorkerState::kReady)) return false;
  const auto waits = [](const WorkerRecord& worker) { return worker.state == WorkerState::kReady; };
  const std::vector<int> waiting = workers.Ranks(waits);
  const std::string who_waits =
      absl::StrCat("while ", RanksInWords(waiting), waiting.size() == 1 ? " waits for it" : " wait for it");
  for (const WorkerRecord& worker : workers.all()) {
    if (worker.outcome != Outcome::kFinished) continue;
    BeginToEnd(
        1, absl::StrCat(NameOf(worker), " ", EndInWords(worker.exit), " ", FinishedBefore(worker), ", ", who_waits));
    return true;
  }
  if (workers.WaitingSince() + config.join_timeout > now || workers.All(WorkerState::kReady)) return false;
  const std::vector<int> missing = workers.Ranks([&](const WorkerRecord& worker) { return !waits(worker); });
  BeginToEnd(1, absl::StrCat(RanksInWords(missing), missing.size() == 1 ? " has" : " have", " not called init within ",
                             InWords(config.join_timeout), ", ", who_waits));
  return true;
}

void DriverCore::State::BeginToEnd(int exit_code, const std::string& reason) {
  CHECK(!ending()) << "the verdict stands: " << verdict->reason;
  verdict.emplace();
  verdict->exit_code = exit_code;
  verdict->reason = reason;
  phase = JobPhase::kEnding;
  for (WorkerRecord& worker : workers.all()) {
    worker.waits_since = Instant::Infinite();
    if (worker.outcome == Outcome::kVictim) worker.outcome = Outcome::kFollowOn;
    if (worker.spawned || worker.state == WorkerState::kGone) continue;
    worker.outcome = Outcome::kNeverStarted;
    workers.Move(&worker, WorkerState::kGone);
  }
}

// ---------------------------------------------------------------------------------------------------------- going on

void DriverCore::State::Proceed(Actions* actions) {
  if (phase == JobPhase::kWaiting && agents.All(AgentState::kReady)) SpawnAll(actions);
  if (phase == JobPhase::kRunning && workers.Any(WorkerState::kReady) && !workers.Any(WorkerState::kRunning)) {
    phase = JobPhase::kForming;
  }
  if (phase == JobPhase::kForming && workers.All(WorkerState::kReady)) FormGeneration(actions);
}

void DriverCore::State::SpawnAll(Actions* actions) {
  const size_t count = agents.all().size();
  const std::string reason = count == 1 ? "the agent is ready" : absl::StrCat("all ", count, " agents are ready");
  for (WorkerRecord& worker : workers.all()) {
    worker.spawned = true;
    actions->push_back(SpawnWorker{worker.id, worker.placement, reason});
  }
  phase = JobPhase::kForming;
}

void DriverCore::State::FormGeneration(Actions* actions) {
  generation = Generation(generation.value() + 1);
  SendAssignment assignment;
  assignment.generation = generation;
  for (WorkerRecord& worker : workers.all()) {
    assignment.members.push_back({worker.id, worker.placement, worker.endpoint});
    worker.generation = generation;
    workers.Move(&worker, WorkerState::kRunning);
  }
  const size_t count = assignment.members.size();
  assignment.reason = count == 1 ? "the worker has joined" : absl::StrCat("all ", count, " workers have joined");
  actions->push_back(std::move(assignment));
  phase = JobPhase::kRunning;
}

// ---------------------------------------------------------------------------------------------------------- ending

// Agents that could not be asked to end, whatever the state of the job.
void DriverCore::State::ForceAgents(Actions* actions) {
  for (AgentRecord& agent : agents.all()) {
    if (!agent.must_be_forced) continue;
    agent.must_be_forced = false;
    actions->push_back(EndAgent{agent.host, agent.incarnation, true,
                                agent.loss.empty() ? "it has not ended by itself" : "whatever is left of it must end"});
  }
}

void DriverCore::State::Finish(Actions* actions) {
  EndWorkers(actions);
  if (workers.AnyLive()) return;
  EndAgents(actions);
  if (!agents.All(AgentState::kGone)) return;
  for (const WorkerRecord& worker : workers.all()) {
    if (worker.outcome == Outcome::kFollowOn) verdict->follow_ons.push_back(EndOf(worker));
  }
  phase = verdict->exit_code == 0 ? JobPhase::kSucceeded : JobPhase::kFailed;
  actions->push_back(EndJob{*verdict});
}

void DriverCore::State::EndWorkers(Actions* actions) {
  const bool at_once = interrupts >= 2;
  for (WorkerRecord& worker : workers.all()) {
    if (!worker.live() || worker.killed) continue;
    if (!worker.told_to_end) {
      worker.told_to_end = true;
      worker.deadline = now + config.grace;
      if (worker.state != WorkerState::kLeaving) workers.Move(&worker, WorkerState::kLeaving);
      if (!at_once) actions->push_back(SignalWorker{worker.id, SIGTERM, verdict->reason});
    }
    if (!at_once && worker.deadline > now) continue;
    worker.killed = true;
    worker.deadline = now + config.end_timeout;
    if (!at_once) verdict->overran.push_back(EndOf(worker));
    actions->push_back(SignalWorker{
        worker.id, SIGKILL,
        at_once ? "a second interrupt" : absl::StrCat("still there ", InWords(config.grace), " after SIGTERM")});
  }
}

void DriverCore::State::EndAgents(Actions* actions) {
  for (AgentRecord& agent : agents.all()) {
    if (agent.state != AgentState::kStarting && agent.state != AgentState::kReady) continue;
    const bool never_reported = agent.state == AgentState::kStarting;
    agents.Move(&agent, AgentState::kEnding);
    agent.deadline = now + config.end_timeout;
    actions->push_back(EndAgent{agent.host, agent.incarnation, never_reported,
                                verdict->exit_code == 0 ? "all workers have finished" : "no worker is left"});
  }
}

}  // namespace farandole
