#include "driver/core/driver_view.h"

#include "tools/base/check.h"

namespace farandole {

std::string ToString(JobPhase phase) {
  switch (phase) {
    case JobPhase::kWaiting:
      return "waiting";
    case JobPhase::kForming:
      return "forming";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kEnding:
      return "ending";
    case JobPhase::kSucceeded:
      return "succeeded";
    case JobPhase::kFailed:
      return "failed";
  }
  CHECK(false) << "no such phase";
  return "";
}

std::string ToString(AgentState state) {
  switch (state) {
    case AgentState::kStarting:
      return "starting";
    case AgentState::kReady:
      return "ready";
    case AgentState::kEnding:
      return "ending";
    case AgentState::kGone:
      return "gone";
  }
  CHECK(false) << "no such agent state";
  return "";
}

std::string ToString(WorkerState state) {
  switch (state) {
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kReady:
      return "ready";
    case WorkerState::kRunning:
      return "running";
    case WorkerState::kLeaving:
      return "leaving";
    case WorkerState::kGone:
      return "gone";
  }
  CHECK(false) << "no such worker state";
  return "";
}

}  // namespace farandole
