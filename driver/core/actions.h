#pragma once

#include <string>
#include <variant>
#include <vector>

#include "driver/core/host_step.h"
#include "driver/core/ids.h"

namespace farandole {

// What the core wants done, in the order in which it must be begun. An action is a request, not a fact: it has happened
// when an event says so. `reason` is one short sentence for logs, the status page and transcripts.

struct StartAgent {
  std::string host;
  Incarnation incarnation;
  std::string reason;
};

struct SpawnWorker {
  WorkerId worker;
  Placement placement;  // what it is told in its environment
  std::string reason;
};

struct AssignedMember {
  WorkerId worker;
  Placement placement;
  std::string endpoint;
};

// Tell every agent of this generation. `members[r]` has rank r.
struct SendAssignment {
  Generation generation;
  std::vector<AssignedMember> members;
  std::string reason;
};

struct SignalWorker {
  WorkerId worker;
  int signal = 0;
  std::string reason;
};

// End whatever is left on the host, and the agent. By force if it cannot be asked: it never reported, or does not
// answer.
struct EndAgent {
  std::string host;
  Incarnation incarnation;
  bool force = false;
  std::string reason;
};

// A worker in the final report.
struct WorkerEnd {
  WorkerId worker;
  int rank = 0;  // its last
  ExitStatus status;
  std::string what;            // for one that could not be executed: what was tried, and the error in words
  bool out_of_memory = false;  // killed, and the kernel says that it kills for want of memory
  friend bool operator==(const WorkerEnd&, const WorkerEnd&) = default;
};

// The job's last word.
struct Verdict {
  int exit_code = 0;               // of the launcher
  std::string reason;              // one sentence for a person; empty when all is well
  bool has_first_failure = false;  // then `first_failure` is the worker that ended the job
  WorkerEnd first_failure;
  std::vector<WorkerEnd> follow_ons;  // others that failed on their own after it (verdict.h)
  std::vector<WorkerEnd> overran;     // had to be killed, still there a grace after SIGTERM
  std::vector<HostStanding> not_up;   // hosts that were not ready in time, when that ended the job
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// Nothing is left to do. The last action of a core.
struct EndJob {
  Verdict verdict;
};

using Action = std::variant<StartAgent, SpawnWorker, SendAssignment, SignalWorker, EndAgent, EndJob>;
using Actions = std::vector<Action>;

// One line: what is to be done, and in parentheses why.
std::string ToString(const Action& action);

}  // namespace farandole
