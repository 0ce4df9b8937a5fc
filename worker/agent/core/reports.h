#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "driver/core/events.h"
#include "driver/core/ids.h"

namespace farandole {

// What an agent tells its driver. What the driver's core knows as an event has its struct there; the rest is here.

// The first word.
struct AgentRegistration {
  int protocol_min = 0, protocol_max = 0;
  std::string job;
  std::string host;
  Incarnation incarnation;
  std::string version;
  int64_t pid = 0;
  std::vector<OfferedAddress> addresses;
};

struct AgentHeartbeat {};

struct WorkerOutput {
  enum class Stream { kStdout, kStderr, kResult };
  WorkerId worker;
  Stream stream = Stream::kStdout;
  std::string data;
};

// All streams of an exited worker are at their end.
struct WorkerOutputEnded {
  WorkerId worker;
};

// A sentence of a worker's library for the person at the launcher.
struct WorkerSaid {
  WorkerId worker;
  Generation generation;
  std::string text;
};

// The agent ends, and not because the driver told it to.
struct AgentEndsItself {
  std::string reason;
};

using AgentReport =
    std::variant<AgentRegistration, AgentHeartbeat, WorkerStarted, WorkerStartFailed, WorkerJoined, WorkerLeft,
                 WorkerExited, WorkerOutput, WorkerOutputEnded, WorkerSaid, AgentEndsItself>;

}  // namespace farandole
