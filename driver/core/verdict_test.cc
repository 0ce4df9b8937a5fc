#include "driver/core/verdict.h"

#include <csignal>

#include "gtest/gtest.h"

namespace farandole {
namespace {

Outcome WhileTheJobGoesOn(ExitStatus status) { return JudgeEnd({.status = status}); }
Outcome AfterAFirstFailure(ExitStatus status, bool told) {
  return JudgeEnd({.status = status, .told_to_end = told, .job_is_ending = true, .job_has_first_failure = true});
}
Outcome AfterAnotherEnd(ExitStatus status) {
  return JudgeEnd({.status = status, .told_to_end = true, .job_is_ending = true});
}

constexpr ExitStatus kZero{0, 0};
constexpr ExitStatus kThree{3, 0};
constexpr ExitStatus kCannotBeExecuted{127, 0};
constexpr ExitStatus kSegv{0, SIGSEGV};
constexpr ExitStatus kTerm{0, SIGTERM};
constexpr ExitStatus kKill{0, SIGKILL};
constexpr ExitStatus kShellTerm{128 + SIGTERM, 0};

TEST(Verdict, WhileTheJobGoesOnEveryEndButZeroIsTheFirstFailure) {
  EXPECT_EQ(WhileTheJobGoesOn(kZero), Outcome::kFinished);
  EXPECT_EQ(WhileTheJobGoesOn(kThree), Outcome::kFirstFailure);
  EXPECT_EQ(WhileTheJobGoesOn(kCannotBeExecuted), Outcome::kFirstFailure);
  EXPECT_EQ(WhileTheJobGoesOn(kTerm), Outcome::kFirstFailure);
  EXPECT_EQ(WhileTheJobGoesOn(kKill), Outcome::kFirstFailure);
}

TEST(Verdict, AfterAFirstFailureWhoFailsOnItsOwnIsAFollowOn) {
  for (bool told : {false, true}) {
    EXPECT_EQ(AfterAFirstFailure(kZero, told), Outcome::kEndedAsTold);
    EXPECT_EQ(AfterAFirstFailure(kThree, told), Outcome::kFollowOn);
    EXPECT_EQ(AfterAFirstFailure(kCannotBeExecuted, told), Outcome::kFollowOn);
    EXPECT_EQ(AfterAFirstFailure(kSegv, told), Outcome::kFollowOn);
  }
}

TEST(Verdict, WhoEndsByOurSignalIsNoFollowOn) {
  for (ExitStatus status : {kTerm, kKill, kShellTerm}) {
    EXPECT_EQ(AfterAFirstFailure(status, true), Outcome::kEndedAsTold);
    EXPECT_EQ(AfterAFirstFailure(status, false), Outcome::kFollowOn);
  }
}

TEST(Verdict, WithoutAFirstFailureNothingFollowsFromIt) {
  for (ExitStatus status : {kZero, kThree, kCannotBeExecuted, kSegv, kTerm, kKill}) {
    EXPECT_EQ(AfterAnotherEnd(status), Outcome::kEndedAsTold);
  }
}

}  // namespace
}  // namespace farandole
