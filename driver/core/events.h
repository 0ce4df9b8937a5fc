#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "driver/core/host_step.h"
#include "driver/core/ids.h"

namespace farandole {

// Everything that can happen to a job, as the core is told of it. Events may come late, twice or out of order; those
// about another incarnation or generation than the present one are counted and dropped at one gate.

// A host has come to a step on its way into the job; or, with a note, an attempt there has failed and is repeated.
struct AgentProgress {
  std::string host;
  Incarnation incarnation;
  HostStep step = HostStep::kResolve;
  std::string note;
};

// An agent has connected and speaks our protocol.
struct AgentReady {
  std::string host;
  Incarnation incarnation;
  std::vector<OfferedAddress> addresses;  // of the host; the core does not look at them
};

// Any sign of life of an agent: a heartbeat or another message.
struct AgentHeard {
  std::string host;
  Incarnation incarnation;
};

// An agent ends without having been told to, and takes its workers with it; its stream goes on until they are gone.
struct AgentEnding {
  std::string host;
  Incarnation incarnation;
  std::string reason;  // for a person
};

// An agent could not be started, or its stream ended without having been told to.
struct AgentFailed {
  std::string host;
  Incarnation incarnation;
  std::string reason;  // for a person
};

// An agent has gone after EndAgent: nothing of the job runs on its host.
struct AgentEnded {
  std::string host;
  Incarnation incarnation;
};

struct WorkerStarted {
  WorkerId worker;
  int64_t pid = 0;
};

// The program could not be executed.
struct WorkerStartFailed {
  WorkerId worker;
  int error = 0;     // errno
  std::string what;  // the path or folder tried
};

// The worker's library waits for an assignment above `after`.
struct WorkerJoined {
  WorkerId worker;
  std::string endpoint;
  Generation after;
};

// The worker's library has left `generation` in order.
struct WorkerLeft {
  WorkerId worker;
  Generation generation;
};

// The worker's library has told of a peer that it lost in `generation`: if it fails after this, it is not where it
// began.
struct WorkerSawLoss {
  WorkerId worker;
  Generation generation;
};

struct WorkerExited {
  WorkerId worker;
  ExitStatus status;
  // It was killed while the kernel's count of processes that it kills for want of memory went up.
  bool out_of_memory = false;
};

// A person or a scheduler asked to end the job: Ctrl-C (SIGINT) or SIGTERM. A second one ends it at once.
struct Interrupted {
  int signal = 0;
};

// Output of the workers cannot be written at present (a stopped terminal, a pager): an agent that has to end and still
// has some waits for us, not we for it. Repeated while it lasts.
struct OutputHeld {};

using Event =
    std::variant<AgentProgress, AgentReady, AgentHeard, AgentEnding, AgentFailed, AgentEnded, WorkerStarted,
                 WorkerStartFailed, WorkerJoined, WorkerLeft, WorkerSawLoss, WorkerExited, Interrupted, OutputHeld>;

}  // namespace farandole
