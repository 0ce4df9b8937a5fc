#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/core/host_step.h"
#include "driver/core/ids.h"

namespace farandole {

enum class JobPhase { kWaiting, kForming, kRunning, kEnding, kSucceeded, kFailed };
enum class AgentState { kStarting, kReady, kEnding, kGone };
// starting: spawned, or about to be. ready: joined, waits for an assignment. running: has one. leaving: has left its
// generation, or was told to end. gone: the process has ended.
enum class WorkerState { kStarting, kReady, kRunning, kLeaving, kGone };

std::string ToString(JobPhase phase);
std::string ToString(AgentState state);
std::string ToString(WorkerState state);

// What the core knows, at one moment: one truth for the progress line, logs, the status page and transcripts.
struct DriverView {
  struct Agent {
    std::string host;
    Incarnation incarnation;
    AgentState state = AgentState::kStarting;
    HostStep step = HostStep::kResolve;
    std::string note;  // what holds it up there; empty: nothing came back yet
    friend bool operator==(const Agent&, const Agent&) = default;
  };
  struct Worker {
    WorkerId id;
    WorkerState state = WorkerState::kStarting;
    Placement placement;
    bool process_started = false;
    bool joined = false;  // has called init, at any time
    std::string endpoint;
    bool lost = false;  // gone with its agent, or deaf to KILL: how it ended is not known
    ExitStatus exit;    // when gone and not lost
    friend bool operator==(const Worker&, const Worker&) = default;
  };
  JobPhase phase = JobPhase::kWaiting;
  Generation generation;        // zero: none formed yet
  std::vector<Agent> agents;    // in the order of the hosts
  std::vector<Worker> workers;  // in rank order
  uint64_t stale_dropped = 0;   // events about the past
  friend bool operator==(const DriverView&, const DriverView&) = default;
};

}  // namespace farandole
