// What is easier to say in code than in a transcript; the stories are in tests/scenarios.

#include "driver/core/driver_core.h"

#include <cerrno>
#include <csignal>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/driver_config.h"
#include "driver/core/driver_view.h"
#include "driver/core/events.h"
#include "driver/core/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

DriverConfig Config(int np, std::vector<HostSlots> hosts) {
  DriverConfig config;
  config.np = np;
  config.hosts = std::move(hosts);
  return config;
}

// One core and its clock. Every call returns the actions as lines and checks the invariants.
class Job {
 public:
  explicit Job(DriverConfig config) : core_(std::move(config), /*seed=*/1) {
    Actions actions;
    core_.Start(now_, &actions);
    start_ = Lines(actions);
  }

  std::vector<std::string> Step(const Event& event) {
    Actions actions;
    core_.Step(now_, event, &actions);
    return Lines(actions);
  }
  std::vector<std::string> Tick() {
    Actions actions;
    core_.Tick(now_, &actions);
    return Lines(actions);
  }
  // Time passes with the ticks that the core asks for, and with heartbeats of the agents in `heard`.
  std::vector<std::string> Pass(absl::Duration time, const std::vector<std::string>& heard = {}) {
    const Instant end = now_ + time;
    std::vector<std::string> lines;
    while (now_ < end) {
      now_ = std::min(end, core_.NextDeadline());
      for (const std::string& host : heard) Append(Step(AgentHeard{host, AgentOf(host)}), &lines);
      Append(Tick(), &lines);
    }
    return lines;
  }
  // Time passes and nobody calls the core.
  void Sleep(absl::Duration time) { now_ = now_ + time; }

  std::vector<std::string> Ready(const std::string& host) { return Step(AgentReady{host, AgentOf(host)}); }
  std::vector<std::string> Exit(int rank, ExitStatus status) { return Step(WorkerExited{Worker(rank).id, status}); }
  std::vector<std::string> Join(int rank, uint64_t after = 0) {
    return Step(WorkerJoined{Worker(rank).id, "127.0.0.1:1", Generation(after)});
  }
  std::vector<std::string> Ended(const std::string& host) { return Step(AgentEnded{host, AgentOf(host)}); }

  Incarnation AgentOf(const std::string& host) const {
    for (const DriverView::Agent& agent : core_.View().agents) {
      if (agent.host == host) return agent.incarnation;
    }
    return Incarnation();
  }
  DriverView::Worker Worker(int rank) const { return core_.View().workers.at(rank); }

  const std::vector<std::string>& start() const { return start_; }
  const DriverCore& core() const { return core_; }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }

 private:
  static void Append(const std::vector<std::string>& from, std::vector<std::string>* to) {
    to->insert(to->end(), from.begin(), from.end());
  }
  std::vector<std::string> Lines(const Actions& actions) {
    EXPECT_OK(core_.CheckInvariants());
    std::vector<std::string> lines;
    for (const Action& action : actions) {
      EXPECT_THAT(verdicts_, IsEmpty()) << "after the last action: " << ToString(action);
      lines.push_back(ToString(action));
      if (const auto* end = std::get_if<EndJob>(&action)) verdicts_.push_back(end->verdict);
    }
    return lines;
  }

  DriverCore core_;
  Instant now_ = Instant::FromNanos(5'000'000'000);
  std::vector<std::string> start_;
  std::vector<Verdict> verdicts_;
};

TEST(DriverCore, AHostWithoutWorkersGetsNoAgent) {
  Job job(Config(2, {{"a", 2}, {"b", 2}}));
  EXPECT_THAT(job.start(), ElementsAre("start agent a (for ranks 0, 1)"));
}

TEST(DriverCore, IncarnationsComeFromTheSeed) {
  const DriverConfig config = Config(2, {{"a", 2}});
  const DriverView view = DriverCore(config, 1).View();
  EXPECT_EQ(view, DriverCore(config, 1).View());
  EXPECT_NE(view.workers[0].id.incarnation, DriverCore(config, 2).View().workers[0].id.incarnation);
}

TEST(DriverCore, AnAgentThatNeverReportsIsWaitedForNoLongerThanTheStartTimeout) {
  Job job(Config(3, {{"a", 1}, {"b", 1}, {"c", 1}}));
  job.Ready("a");
  EXPECT_THAT(job.Pass(absl::Seconds(29), {"a"}), IsEmpty());
  const std::vector<std::string> lines = job.Pass(absl::Seconds(2), {"a"});
  EXPECT_THAT(lines, ElementsAre("end agent a (no worker is left)", "end agent by force b (no worker is left)",
                                 "end agent by force c (no worker is left)"));
  job.Ended("a");
  job.Step(AgentFailed{"b", job.AgentOf("b"), "killed"});
  EXPECT_THAT(job.Step(AgentFailed{"c", job.AgentOf("c"), "killed"}), SizeIs(1));
  ASSERT_THAT(job.verdicts(), SizeIs(1));
  EXPECT_EQ(job.verdicts()[0].exit_code, 1);
  EXPECT_THAT(job.verdicts()[0].reason, StartsWith("2 of 3 hosts were not ready within 30s"));
}

TEST(DriverCore, TimeInWhichTheDriverDidNotRunIsNotHeldAgainstTheAgents) {
  Job job(Config(1, {{"a", 1}}));
  job.Ready("a");
  job.Sleep(absl::Hours(3));  // a closed lid
  EXPECT_THAT(job.Tick(), IsEmpty());
  EXPECT_THAT(job.Pass(absl::Milliseconds(2900)), IsEmpty());
  EXPECT_THAT(job.Pass(absl::Milliseconds(200)), Not(IsEmpty())) << "it is lost if it is silent from now on";
}

TEST(DriverCore, AGraceIsNotUsedUpWhileTheDriverDidNotRun) {
  Job job(Config(1, {{"a", 1}}));
  job.Ready("a");
  EXPECT_THAT(job.Step(Interrupted{SIGINT}), ElementsAre(StartsWith("send SIGTERM to a/0")));
  job.Sleep(absl::Minutes(1));
  EXPECT_THAT(job.Tick(), IsEmpty());
  EXPECT_THAT(job.Pass(absl::Seconds(4), {"a"}), IsEmpty());
  EXPECT_THAT(job.Pass(absl::Seconds(2), {"a"}), ElementsAre("send SIGKILL to a/0 (still there 5s after SIGTERM)"));
}

TEST(DriverCore, NothingIsWaitedForAfterTheEnd) {
  Job job(Config(1, {{"a", 1}}));
  job.Ready("a");
  EXPECT_FALSE(job.core().NextDeadline().is_infinite());
  job.Exit(0, {});
  EXPECT_THAT(job.Ended("a"), ElementsAre("end job: exit code 0"));
  EXPECT_TRUE(job.core().NextDeadline().is_infinite());
  EXPECT_EQ(job.core().View().phase, JobPhase::kSucceeded);
  const uint64_t dropped = job.core().View().stale_dropped;
  EXPECT_THAT(job.Step(Interrupted{SIGINT}), IsEmpty());
  EXPECT_THAT(job.Step(AgentFailed{"a", job.AgentOf("a"), "late"}), IsEmpty());
  EXPECT_EQ(job.core().View().stale_dropped, dropped + 2);
}

TEST(DriverCore, AProcessThatEvenKillCannotEndDoesNotHoldTheJob) {
  Job job(Config(2, {{"a", 1}, {"b", 1}}));
  job.Ready("a");
  job.Ready("b");
  job.Step(Interrupted{SIGINT});
  job.Step(Interrupted{SIGINT});
  job.Exit(0, {0, SIGKILL});
  EXPECT_THAT(job.Pass(absl::Seconds(4), {"a", "b"}), IsEmpty());
  EXPECT_THAT(job.Pass(absl::Seconds(2), {"a", "b"}),
              ElementsAre(StartsWith("end agent a"), StartsWith("end agent b")));
  EXPECT_TRUE(job.Worker(1).lost);
  job.Ended("a");
  job.Ended("b");
  ASSERT_THAT(job.verdicts(), SizeIs(1));
  EXPECT_EQ(job.verdicts()[0].exit_code, 130);
  EXPECT_EQ(
      job.verdicts()[0].reason,
      "the job was interrupted by SIGINT; rank 1 on host b has not ended 5s after SIGKILL and may still be there");
}

TEST(DriverCore, AnAgentThatDoesNotEndIsForcedAndTheJobEndsWithoutIt) {
  Job job(Config(1, {{"a", 1}}));
  job.Ready("a");
  EXPECT_THAT(job.Exit(0, {}), ElementsAre("end agent a (all workers have finished)"));
  EXPECT_THAT(job.Pass(absl::Seconds(4)), IsEmpty());
  EXPECT_THAT(job.Pass(absl::Seconds(2)),
              ElementsAre("end agent by force a (it has not ended by itself)", "end job: exit code 0"));
}

TEST(DriverCore, AnAgentThatFailsAfterItsWorkersHaveFinishedCostsNothing) {
  Job job(Config(2, {{"a", 1}, {"b", 1}}));
  job.Ready("a");
  job.Ready("b");
  job.Exit(1, {});
  EXPECT_THAT(job.Step(AgentFailed{"b", job.AgentOf("b"), "the machine was taken away"}), SizeIs(1));
  EXPECT_EQ(job.core().View().phase, JobPhase::kForming);
  job.Exit(0, {});
  EXPECT_THAT(job.Ended("a"), ElementsAre("end job: exit code 0"));
}

TEST(DriverCore, AnAgentLostBeforeTheJobBeganEndsIt) {
  Job job(Config(2, {{"a", 1}, {"b", 1}}));
  job.Ready("a");
  EXPECT_THAT(job.Step(AgentFailed{"a", job.AgentOf("a"), "connection reset"}),
              ElementsAre(StartsWith("end agent by force a"), StartsWith("end agent by force b")));
  job.Step(AgentFailed{"b", job.AgentOf("b"), "killed"});
  ASSERT_THAT(job.verdicts(), SizeIs(1));
  EXPECT_EQ(job.verdicts()[0].reason, "host a: its agent was lost before the job began: connection reset");
}

TEST(DriverCore, AnInterruptKeepsTheCodeOfAFailureThatCameFirst) {
  Job job(Config(2, {{"a", 2}}));
  job.Ready("a");
  EXPECT_THAT(job.Exit(0, {3, 0}), ElementsAre(StartsWith("send SIGTERM to a/1")));
  EXPECT_THAT(job.Step(Interrupted{SIGINT}), IsEmpty());
  EXPECT_THAT(job.Step(Interrupted{SIGINT}), ElementsAre("send SIGKILL to a/1 (a second interrupt)"));
  job.Exit(1, {0, SIGKILL});
  job.Ended("a");
  ASSERT_THAT(job.verdicts(), SizeIs(1));
  EXPECT_EQ(job.verdicts()[0].exit_code, 3);
  EXPECT_THAT(job.verdicts()[0].follow_ons, IsEmpty());
}

TEST(DriverCore, FirstFailureAndFollowOnsAreInTheVerdict) {
  Job job(Config(4, {{"a", 4}}));
  job.Ready("a");
  job.Exit(2, {0, SIGSEGV});
  job.Exit(0, {1, 0});
  job.Exit(1, {0, SIGTERM});
  job.Step(WorkerStartFailed{job.Worker(3).id, ENOENT, "no-such-program"});
  job.Ended("a");
  ASSERT_THAT(job.verdicts(), SizeIs(1));
  const Verdict& verdict = job.verdicts()[0];
  EXPECT_EQ(verdict.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(verdict.reason, "rank 2 on host a was ended by signal 11 (SIGSEGV)");
  ASSERT_TRUE(verdict.has_first_failure);
  EXPECT_EQ(verdict.first_failure, (WorkerEnd{job.Worker(2).id, 2, {0, SIGSEGV}, ""}));
  EXPECT_THAT(verdict.follow_ons,
              ElementsAre(WorkerEnd{job.Worker(0).id, 0, {1, 0}, ""},
                          WorkerEnd{job.Worker(3).id, 3, {127, 0}, "no-such-program: No such file or directory"}));
}

TEST(DriverCore, AJoinOfAnotherGenerationIsDropped) {
  Job job(Config(2, {{"a", 2}}));
  job.Ready("a");
  EXPECT_THAT(job.Join(0, /*after=*/7), IsEmpty());
  EXPECT_FALSE(job.Worker(0).joined);
  job.Join(0);
  EXPECT_THAT(job.Join(1), ElementsAre("generation 1: a/0=0 a/1=1 (all 2 workers have joined)"));
  EXPECT_THAT(job.Join(0, /*after=*/0), IsEmpty()) << "repeated, and answered by generation 1";
  EXPECT_EQ(job.Worker(0).state, WorkerState::kRunning);
  EXPECT_EQ(job.core().View().stale_dropped, 2);
}

TEST(DriverCore, TheLastEndpointOfARepeatedJoinCounts) {
  Job job(Config(2, {{"a", 2}}));
  job.Ready("a");
  job.Join(0);
  job.Step(WorkerJoined{job.Worker(0).id, "127.0.0.1:77", Generation()});
  EXPECT_EQ(job.Worker(0).endpoint, "127.0.0.1:77");
  EXPECT_THAT(job.Join(1), SizeIs(1));
}

TEST(DriverCore, AJoinMeansThatTheGenerationBeforeWasLeft) {
  Job job(Config(1, {{"a", 1}}));
  job.Ready("a");
  job.Join(0);
  EXPECT_THAT(job.Join(0, /*after=*/1), ElementsAre("generation 2: a/0=0 (the worker has joined)"));
}

TEST(DriverCoreDeathTest, TimeDoesNotGoBack) {
  DriverCore core(Config(1, {{"a", 1}}), 1);
  Actions actions;
  core.Start(Instant::FromNanos(10), &actions);
  EXPECT_DEATH(core.Tick(Instant::FromNanos(9), &actions), "time went back");
}

}  // namespace
}  // namespace farandole
