#include "worker/runtime/session_state.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tools/base/check.h"

namespace farandole {
namespace {

using Phase = SessionState::Phase;

struct Move {
  Phase from;
  Phase to;
  absl::string_view meaning;
};

// Every legal move of a session. Anything else is a bug here.
constexpr Move kMoves[] = {
    {Phase::kOutside, Phase::kJoining, "asked the agent for a place"},
    {Phase::kJoining, Phase::kAssigned, "got a place in a newer generation"},
    {Phase::kJoining, Phase::kOutside, "gave up waiting for a place"},
    {Phase::kAssigned, Phase::kLeaving, "leaves its generation"},
    {Phase::kLeaving, Phase::kOutside, "has left it"},
    {Phase::kOutside, Phase::kDone, "lost its agent"},
    {Phase::kJoining, Phase::kDone, "lost its agent"},
    {Phase::kAssigned, Phase::kDone, "lost its agent"},
    {Phase::kLeaving, Phase::kDone, "lost its agent"},
};

}  // namespace

absl::string_view Name(SessionState::Phase phase) {
  switch (phase) {
    case Phase::kOutside:
      return "outside";
    case Phase::kJoining:
      return "joining";
    case Phase::kAssigned:
      return "assigned";
    case Phase::kLeaving:
      return "leaving";
    case Phase::kDone:
      return "done";
  }
  return "?";
}

absl::Status SessionState::Step(const SessionEvent& event, std::vector<SessionAction>* actions) {
  return std::visit([&](const auto& what) { return On(what, actions); }, event);
}

absl::Status SessionState::On(const JoinWanted&, std::vector<SessionAction>* actions) {
  if (phase_ == Phase::kDone) return absl::UnavailableError(lost_reason_);
  if (phase_ != Phase::kOutside) {
    return absl::FailedPreconditionError(absl::StrCat("this worker cannot join while it is ", Name(phase_)));
  }
  Enter(Phase::kJoining);
  actions->emplace_back(AskForPlace{generation_});
  return absl::OkStatus();
}

absl::Status SessionState::On(const AssignmentSeen& event, std::vector<SessionAction>* actions) {
  if (phase_ != Phase::kJoining || event.generation <= generation_ || !event.member) {
    ++dropped_assignments_;
    return absl::OkStatus();
  }
  Enter(Phase::kAssigned);
  generation_ = event.generation;
  actions->emplace_back(AdoptGeneration{generation_});
  return absl::OkStatus();
}

absl::Status SessionState::On(const LeaveWanted&, std::vector<SessionAction>* actions) {
  if (phase_ == Phase::kJoining) {
    Enter(Phase::kOutside);
    actions->emplace_back(Disconnect{});
  } else if (phase_ == Phase::kAssigned) {
    Enter(Phase::kLeaving);
    actions->emplace_back(LeaveGeneration{generation_});
  }
  return absl::OkStatus();
}

absl::Status SessionState::On(const LeaveFinished&, std::vector<SessionAction>* actions) {
  if (phase_ != Phase::kLeaving) return absl::OkStatus();
  Enter(Phase::kOutside);
  actions->emplace_back(Disconnect{});
  return absl::OkStatus();
}

absl::Status SessionState::On(const AgentLost& event, std::vector<SessionAction>* actions) {
  if (phase_ == Phase::kDone) return absl::OkStatus();
  Enter(Phase::kDone);
  lost_reason_ = event.reason;
  actions->emplace_back(FailSession{event.reason});
  return absl::OkStatus();
}

void SessionState::Enter(Phase phase) {
  const bool legal = std::any_of(std::begin(kMoves), std::end(kMoves),
                                 [&](const Move& move) { return move.from == phase_ && move.to == phase; });
  CHECK(legal) << "a session moved from " << phase_ << " to " << phase;
  phase_ = phase;
}

}  // namespace farandole
