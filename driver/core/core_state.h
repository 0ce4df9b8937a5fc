#pragma once

// The inside of DriverCore, for its own sources: events.cc takes in, reconcile.cc decides, invariants.cc checks.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "driver/core/actions.h"
#include "driver/core/agent_table.h"
#include "driver/core/driver_config.h"
#include "driver/core/driver_core.h"
#include "driver/core/driver_view.h"
#include "driver/core/events.h"
#include "driver/core/worker_table.h"
#include "tools/base/instant.h"

namespace farandole {

struct DriverCore::State {
  State(DriverConfig config, uint64_t seed);

  DriverConfig config;
  Instant now;
  bool started = false;

  JobPhase phase = JobPhase::kWaiting;
  Generation generation;
  AgentTable agents;
  WorkerTable workers;
  int interrupts = 0;
  int first_interrupt = 0;  // its signal
  uint64_t stale_dropped = 0;

  // Set when the job begins to end, and then only added to.
  absl::optional<Verdict> verdict;

  bool ending() const { return verdict.has_value(); }
  bool over() const { return phase == JobPhase::kSucceeded || phase == JobPhase::kFailed; }

  // --- events.cc: update the tables.
  // Moves the clock, and all deadlines if the driver itself did not run for a while.
  void Advance(Instant to);
  void Apply(const Event& event);
  // An agent is gone without having been told to, and its workers with it.
  void LoseAgent(AgentRecord* agent, const std::string& what_came_back);

  // --- reconcile.cc: the only source of actions.
  void Begin(Actions* actions);
  void Reconcile(Actions* actions);
  Instant NextDeadline() const;

  // --- invariants.cc
  absl::Status CheckInvariants() const;

 private:
  void On(const AgentProgress& event);
  void On(const AgentReady& event);
  void On(const AgentHeard& event);
  void On(const AgentEnding& event);
  void On(const AgentFailed& event);
  void On(const AgentEnded& event);
  void On(const WorkerStarted& event);
  void On(const WorkerStartFailed& event);
  void On(const WorkerJoined& event);
  void On(const WorkerLeft& event);
  void On(const WorkerSawLoss& event);
  void On(const WorkerExited& event);
  void On(const Interrupted& event);
  void On(const OutputHeld& event);
  // The gate: null, and counted, if the event is about the past.
  AgentRecord* Admit(const std::string& host, Incarnation incarnation);
  WorkerRecord* Admit(const WorkerId& worker);
  void Drop() { ++stale_dropped; }
  void EndWorker(WorkerRecord* worker, const ExitStatus& status, const std::string& what);

  void LoseOverdueAgents();
  void GiveUpDeafWorkers();
  void Decide();
  bool DecideOnFailure();
  bool DecideOnVictims();
  void DecideOn(WorkerRecord* first_failure);
  bool DecideOnLostAgent();
  bool DecideOnStartTimeout();
  bool DecideOnGeneration();
  void BeginToEnd(int exit_code, const std::string& reason);
  void SpawnAll(Actions* actions);
  void FormGeneration(Actions* actions);
  void Proceed(Actions* actions);
  void EndWorkers(Actions* actions);
  void EndAgents(Actions* actions);
  void ForceAgents(Actions* actions);
  void Finish(Actions* actions);
};

}  // namespace farandole
