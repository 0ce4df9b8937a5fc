#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/base/ids.h"

namespace farandole {

// What happens to a worker's session.

// The program wants a place.
struct JoinWanted {};
// The agent told of a generation; `member`: this worker has a place in it.
struct AssignmentSeen {
  Generation generation;
  bool member = false;
};
// The program wants out: of its generation, or of the wait for one.
struct LeaveWanted {};
// The agent has heard that we left, or could not be told.
struct LeaveFinished {};
// The agent, or the way to it, is gone. It does not come back.
struct AgentLost {
  std::string reason;  // for a person
};
using SessionEvent = std::variant<JoinWanted, AssignmentSeen, LeaveWanted, LeaveFinished, AgentLost>;

// What must be done about it, in this order.

// Ask the agent for a generation above `after`.
struct AskForPlace {
  Generation after;
};
// Take the place in `generation`: connect to its members.
struct AdoptGeneration {
  Generation generation;
};
// Leave the group of `generation`, then tell the agent, then report LeaveFinished.
struct LeaveGeneration {
  Generation generation;
};
// Nobody waits for a place any more: close the connection to the agent.
struct Disconnect {};
// Whatever waits or runs fails with `reason`.
struct FailSession {
  std::string reason;
};
using SessionAction = std::variant<AskForPlace, AdoptGeneration, LeaveGeneration, Disconnect, FailSession>;

// Where a worker stands with its job. A pure state machine: worker_runtime feeds it events and carries out its actions.
//
//   OUTSIDE --join--> JOINING --assignment--> ASSIGNED --leave--> LEAVING --finished--> OUTSIDE
//                        \------ leave ------------------------------------------------> OUTSIDE
//   any of them --agent lost--> DONE
//
// Generations only grow: a worker that comes back asks for one above the last it had. An assignment that is not newer,
// that does not name this worker, or that comes when none was asked for is counted and dropped, before any other rule:
// membership of a running group changes only when its members join again.
//
// Thread-compatible: the caller serialises all calls.
class SessionState {
 public:
  enum class Phase { kOutside, kJoining, kAssigned, kLeaving, kDone };

  // Applies `event` and appends to `*actions` what it asks for. Errors, after which nothing has changed:
  // FailedPrecondition: the program wants to join again before it has left. Unavailable: it wants to join when the
  // agent is gone; the message is the reason of that.
  absl::Status Step(const SessionEvent& event, std::vector<SessionAction>* actions);

  Phase phase() const { return phase_; }
  // The last one adopted; zero: none yet.
  Generation generation() const { return generation_; }
  int64_t dropped_assignments() const { return dropped_assignments_; }

 private:
  absl::Status On(const JoinWanted& event, std::vector<SessionAction>* actions);
  absl::Status On(const AssignmentSeen& event, std::vector<SessionAction>* actions);
  absl::Status On(const LeaveWanted& event, std::vector<SessionAction>* actions);
  absl::Status On(const LeaveFinished& event, std::vector<SessionAction>* actions);
  absl::Status On(const AgentLost& event, std::vector<SessionAction>* actions);
  void Enter(Phase phase);

  Phase phase_ = Phase::kOutside;
  Generation generation_;
  std::string lost_reason_;
  int64_t dropped_assignments_ = 0;
};

absl::string_view Name(SessionState::Phase phase);
inline std::ostream& operator<<(std::ostream& out, SessionState::Phase phase) { return out << Name(phase); }

}  // namespace farandole
