#include "worker/runtime/session_state.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Phase = SessionState::Phase;

std::vector<SessionAction> StepOk(SessionState* state, const SessionEvent& event) {
  std::vector<SessionAction> actions;
  EXPECT_OK(state->Step(event, &actions));
  return actions;
}

SessionState Assigned(uint64_t generation) {
  SessionState state;
  StepOk(&state, JoinWanted{});
  StepOk(&state, AssignmentSeen{Generation(generation), true});
  return state;
}

TEST(SessionState, JoinsLeavesAndJoinsAgainAboveItsLastGeneration) {
  SessionState state;
  auto actions = StepOk(&state, JoinWanted{});
  ASSERT_THAT(actions, SizeIs(1));
  EXPECT_EQ(std::get<AskForPlace>(actions[0]).after, Generation(0));
  EXPECT_EQ(state.phase(), Phase::kJoining);

  actions = StepOk(&state, AssignmentSeen{Generation(4), true});
  ASSERT_THAT(actions, SizeIs(1));
  EXPECT_EQ(std::get<AdoptGeneration>(actions[0]).generation, Generation(4));
  EXPECT_EQ(state.phase(), Phase::kAssigned);

  actions = StepOk(&state, LeaveWanted{});
  ASSERT_THAT(actions, SizeIs(1));
  EXPECT_EQ(std::get<LeaveGeneration>(actions[0]).generation, Generation(4));
  EXPECT_EQ(state.phase(), Phase::kLeaving);

  actions = StepOk(&state, LeaveFinished{});
  ASSERT_THAT(actions, SizeIs(1));
  EXPECT_TRUE(std::holds_alternative<Disconnect>(actions[0]));
  EXPECT_EQ(state.phase(), Phase::kOutside);

  actions = StepOk(&state, JoinWanted{});
  ASSERT_THAT(actions, SizeIs(1));
  EXPECT_EQ(std::get<AskForPlace>(actions[0]).after, Generation(4));
}

TEST(SessionState, DropsAssignmentsThatAreOldOrOfOthersOrNotAskedFor) {
  SessionState state = Assigned(4);
  EXPECT_THAT(StepOk(&state, AssignmentSeen{Generation(5), true}), IsEmpty());  // not asked for
  StepOk(&state, LeaveWanted{});
  EXPECT_THAT(StepOk(&state, AssignmentSeen{Generation(5), true}), IsEmpty());
  StepOk(&state, LeaveFinished{});
  StepOk(&state, JoinWanted{});
  EXPECT_THAT(StepOk(&state, AssignmentSeen{Generation(4), true}), IsEmpty());   // not newer
  EXPECT_THAT(StepOk(&state, AssignmentSeen{Generation(6), false}), IsEmpty());  // not ours
  EXPECT_EQ(state.dropped_assignments(), 4);
  EXPECT_EQ(state.phase(), Phase::kJoining);
  EXPECT_THAT(StepOk(&state, AssignmentSeen{Generation(6), true}), SizeIs(1));
}

TEST(SessionState, RefusesToJoinTwice) {
  SessionState state;
  StepOk(&state, JoinWanted{});
  std::vector<SessionAction> actions;
  EXPECT_THAT(state.Step(JoinWanted{}, &actions),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("joining")));
  EXPECT_THAT(actions, IsEmpty());
}

TEST(SessionState, GivesUpWaiting) {
  SessionState state;
  StepOk(&state, JoinWanted{});
  const auto actions = StepOk(&state, LeaveWanted{});
  ASSERT_THAT(actions, SizeIs(1));
  EXPECT_TRUE(std::holds_alternative<Disconnect>(actions[0]));
  EXPECT_EQ(state.phase(), Phase::kOutside);
}

TEST(SessionState, LeavingWithoutAPlaceDoesNothing) {
  SessionState state;
  EXPECT_THAT(StepOk(&state, LeaveWanted{}), IsEmpty());
  EXPECT_THAT(StepOk(&state, LeaveFinished{}), IsEmpty());
  EXPECT_EQ(state.phase(), Phase::kOutside);
}

TEST(SessionState, LosesItsAgentOnceFromEveryPhase) {
  SessionState joining;
  StepOk(&joining, JoinWanted{});
  SessionState leaving = Assigned(1);
  StepOk(&leaving, LeaveWanted{});
  for (SessionState state : {SessionState(), joining, Assigned(1), leaving}) {
    SCOPED_TRACE(state.phase());
    const auto actions = StepOk(&state, AgentLost{"agent gone"});
    ASSERT_THAT(actions, SizeIs(1));
    EXPECT_EQ(std::get<FailSession>(actions[0]).reason, "agent gone");
    EXPECT_EQ(state.phase(), Phase::kDone);

    EXPECT_THAT(StepOk(&state, AgentLost{"again"}), IsEmpty());
    EXPECT_THAT(StepOk(&state, LeaveWanted{}), IsEmpty());
    EXPECT_THAT(StepOk(&state, LeaveFinished{}), IsEmpty());
    EXPECT_THAT(StepOk(&state, AssignmentSeen{Generation(9), true}), IsEmpty());
    std::vector<SessionAction> none;
    EXPECT_THAT(state.Step(JoinWanted{}, &none), StatusIs(absl::StatusCode::kUnavailable, "agent gone"));
    EXPECT_EQ(state.phase(), Phase::kDone);
  }
}

}  // namespace
}  // namespace farandole
