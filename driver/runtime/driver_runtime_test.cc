#include "driver/runtime/driver_runtime.h"

#include <cerrno>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "driver/core/driver_config.h"
#include "driver/core/driver_view.h"
#include "driver/core/ids.h"
#include "driver/runtime/testing/scripted_agent.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(20);

// Keeps what is written, by rank; holds its writer while it is closed.
class FakeSink final : public OutputSink {
 public:
  void Write(const WorkerId&, int rank, OutputStream stream, absl::string_view data) override {
    MutexLock lock(&mutex_);
    ++entered_;
    changed_.NotifyAll();
    changed_.Await(&mutex_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return open_; });
    constexpr const char* kMarks[] = {"", "!", "="};
    absl::StrAppend(&text_[rank], kMarks[static_cast<int>(stream)], data);
    changed_.NotifyAll();
  }
  void End(const WorkerId&, int rank) override {
    MutexLock lock(&mutex_);
    absl::StrAppend(&text_[rank], "$");
  }
  void Close() {
    MutexLock lock(&mutex_);
    open_ = false;
  }
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  bool AwaitWriter() {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + kPatience,
                               [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return entered_ > 0; });
  }
  bool AwaitText(int rank) {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + kPatience,
                               [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !text_[rank].empty(); });
  }
  std::string text(int rank) {
    MutexLock lock(&mutex_);
    return text_[rank];
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  int entered_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, std::string> text_ ABSL_GUARDED_BY(mutex_);
};

class DriverRuntimeTest : public ::testing::Test {
 protected:
  DriverRuntimeTest() {
    options_.job = "job";
    options_.job_key = std::string(32, 'k');
    options_.command = [](const WorkerId& worker, const Placement& placement) {
      return WorkerCommand{{"program", absl::StrCat(placement.rank)}, {absl::StrCat("HOST=", worker.slot.host)}, "/"};
    };
    options_.starter = &starter_;
    options_.output = &sink_;
    options_.on_view = [this](const DriverView& view) { views_.push_back(view); };
    options_.on_reason = [this](absl::string_view reason) { reasons_.emplace_back(reason); };
    // Fake agents send no heartbeats.
    options_.config.lost_after = absl::Minutes(1);
    options_.config.end_timeout = kPatience;
    options_.config.grace = kPatience;
  }

  std::unique_ptr<DriverRuntime> Make(int np, std::vector<HostSlots> hosts) {
    options_.config.np = np;
    options_.config.hosts = std::move(hosts);
    absl::StatusOr<std::unique_ptr<DriverRuntime>> runtime = DriverRuntime::Create(options_);
    EXPECT_OK(runtime);
    return *std::move(runtime);
  }
  Verdict Run(int np, std::vector<HostSlots> hosts) { return Make(np, std::move(hosts))->Run(); }

  FakeSink sink_;
  DriverRuntimeOptions options_;
  std::vector<DriverView> views_;
  std::vector<std::string> reasons_;
  ScriptedAgentStarter starter_;  // first to go: its agents call into the test
};

void ExitAtOnce(ScriptedAgent& agent, const v1::Spawn& spawn, int code) {
  agent.Started(spawn.worker());
  agent.Exited(spawn.worker(), code);
  agent.OutputEnded(spawn.worker());
}

TEST_F(DriverRuntimeTest, ProgramsRunAndTheJobSucceeds) {
  starter_.behaviours[""].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) {
    EXPECT_EQ(spawn.working_directory(), "/");
    agent.Output(spawn.worker(),
                 absl::StrCat(spawn.arguments(0), " ", spawn.arguments(1), " ", spawn.environment(0), "\n"));
    ExitAtOnce(agent, spawn, 0);
  };
  const Verdict verdict = Run(3, {{"a", 2}, {"b", 2}});
  EXPECT_EQ(verdict, Verdict());
  EXPECT_EQ(sink_.text(0), "program 0 HOST=a\n$");
  EXPECT_EQ(sink_.text(1), "program 1 HOST=a\n$");
  EXPECT_EQ(sink_.text(2), "program 2 HOST=b\n$");
  EXPECT_EQ(starter_.kills(), 0);
}

TEST_F(DriverRuntimeTest, ViewsAndReasonsTellTheStory) {
  starter_.behaviours[""].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) { ExitAtOnce(agent, spawn, 0); };
  Run(1, {{"a", 1}});
  EXPECT_THAT(reasons_, ElementsAre("start agent a (for rank 0)", "spawn a/0 rank=0 (the agent is ready)",
                                    "end agent a (all workers have finished)", "end job: exit code 0"));
  ASSERT_THAT(views_, Not(IsEmpty()));
  EXPECT_EQ(views_.front().phase, JobPhase::kWaiting);
  EXPECT_EQ(views_.back().phase, JobPhase::kSucceeded);
  for (size_t i = 1; i < views_.size(); ++i) EXPECT_NE(views_[i - 1], views_[i]);
}

TEST_F(DriverRuntimeTest, MembersGetTheirAssignmentAndCanJoinAgain) {
  std::map<uint32_t, v1::WorkerId> workers;
  ScriptedAgent::Behaviour& behaviour = starter_.behaviours[""];
  behaviour.program = [](ScriptedAgent& agent, const v1::Spawn& spawn) {
    agent.Started(spawn.worker());
    agent.Joined(spawn.worker());
  };
  behaviour.on_assignment = [](ScriptedAgent& agent, const v1::Assignment& assignment) {
    ASSERT_EQ(assignment.members_size(), 2);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(assignment.members(rank).placement().rank(), rank);
      EXPECT_EQ(assignment.members(rank).endpoint(), "127.0.0.1:1");
      agent.Left(assignment.members(rank).worker(), assignment.generation());
      if (assignment.generation() == 1) {
        agent.Joined(assignment.members(rank).worker(), 1);
      } else {
        agent.Exited(assignment.members(rank).worker(), 0);
      }
    }
  };
  EXPECT_EQ(Run(2, {{"a", 2}}).exit_code, 0);
  EXPECT_EQ(views_.back().generation, Generation(2));
}

TEST_F(DriverRuntimeTest, WorkersReadTheInputAndWriteResults) {
  options_.worker_input = std::make_shared<const std::string>(500'000, 'f');
  options_.command = [](const WorkerId&, const Placement&) {
    WorkerCommand command{{"function"}, {}, "/"};
    command.wants_result = true;
    return command;
  };
  size_t input = 0;
  starter_.behaviours[""].on_input = [&input](ScriptedAgent&, const v1::Input& piece) { input += piece.data().size(); };
  starter_.behaviours[""].program = [&input](ScriptedAgent& agent, const v1::Spawn& spawn) {
    EXPECT_EQ(input, 500'000u) << "all of it, before the first worker";
    EXPECT_TRUE(spawn.has_input());
    EXPECT_TRUE(spawn.wants_result());
    agent.Output(spawn.worker(), "thinking\n");
    agent.Result(spawn.worker(), "42");
    ExitAtOnce(agent, spawn, 0);
  };
  EXPECT_EQ(Run(1, {{"a", 1}}).exit_code, 0);
  EXPECT_EQ(sink_.text(0), "thinking\n=42$");
}

TEST_F(DriverRuntimeTest, AFailureEndsTheOthers) {
  starter_.behaviours[""].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) {
    agent.Started(spawn.worker());
    if (spawn.placement().rank() != 1) return;
    agent.Output(spawn.worker(), "out of cheese\n", /*is_stderr=*/true);
    agent.Exited(spawn.worker(), 3);
  };
  const Verdict verdict = Run(3, {{"a", 2}, {"b", 1}});
  EXPECT_EQ(verdict.exit_code, 3);
  EXPECT_EQ(verdict.reason, "rank 1 on host a ended with exit code 3");
  EXPECT_EQ(verdict.first_failure.rank, 1);
  EXPECT_THAT(verdict.follow_ons, IsEmpty());
  EXPECT_EQ(sink_.text(1), "!out of cheese\n");
  EXPECT_THAT(reasons_, Contains(HasSubstr("send SIGTERM to b/0")));
}

TEST_F(DriverRuntimeTest, AProgramThatCannotBeExecuted) {
  starter_.behaviours[""].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) {
    agent.StartFailed(spawn.worker(), ENOENT, "program");
  };
  const Verdict verdict = Run(1, {{"a", 1}});
  EXPECT_EQ(verdict.exit_code, 127);
  EXPECT_EQ(verdict.first_failure.what, "program: No such file or directory");
}

TEST_F(DriverRuntimeTest, AnAgentThatCannotBeStarted) {
  starter_.refusals["b"] = absl::NotFoundError("/no/agent: No such file or directory");
  const Verdict verdict = Run(2, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_EQ(verdict.reason, "host b failed at step \"agent\": /no/agent: No such file or directory");
}

TEST_F(DriverRuntimeTest, AnAgentThatDiesTakesTheJobWithIt) {
  starter_.behaviours["a"].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) {
    agent.Started(spawn.worker());
  };
  starter_.behaviours["b"].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) { agent.Die(); };
  const Verdict verdict = Run(2, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_THAT(verdict.reason, HasSubstr("host b: its agent was lost, and rank 1 with it"));
}

TEST_F(DriverRuntimeTest, AnAgentThatNeverReportsIsKilled) {
  options_.config.start_timeout = absl::Milliseconds(50);
  starter_.behaviours[""].registers = false;
  const Verdict verdict = Run(1, {{"a", 1}});
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_THAT(verdict.reason, HasSubstr("host a was not ready within 50ms"));
  EXPECT_EQ(starter_.kills(), 1);
}

TEST_F(DriverRuntimeTest, ASilentAgentIsLostAndKilled) {
  options_.config.heartbeat_interval = absl::Milliseconds(10);
  options_.config.lost_after = absl::Milliseconds(100);
  starter_.behaviours[""].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) { agent.Started(spawn.worker()); };
  const Verdict verdict = Run(1, {{"a", 1}});
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_THAT(verdict.reason, HasSubstr("no sign of life for 100ms"));
  EXPECT_EQ(starter_.kills(), 1);
}

TEST_F(DriverRuntimeTest, AnInterruptEndsTheWorkers) {
  DriverRuntime* running = nullptr;
  starter_.behaviours[""].program = [&](ScriptedAgent& agent, const v1::Spawn& spawn) {
    agent.Started(spawn.worker());
    if (spawn.placement().rank() == 1) running->Interrupt(SIGTERM);
  };
  const std::unique_ptr<DriverRuntime> runtime = Make(2, {{"a", 2}});
  running = runtime.get();
  const Verdict verdict = runtime->Run();
  EXPECT_EQ(verdict.exit_code, 143);
  EXPECT_EQ(verdict.reason, "the job was interrupted by SIGTERM");
}

TEST_F(DriverRuntimeTest, AnInterruptBeforeTheStartCounts) {
  const std::unique_ptr<DriverRuntime> runtime = Make(1, {{"a", 1}});
  runtime->Interrupt(SIGINT);
  EXPECT_EQ(runtime->Run().exit_code, 130);
}

TEST_F(DriverRuntimeTest, ASecondInterruptDoesNotWaitForTheGrace) {
  DriverRuntime* running = nullptr;
  ScriptedAgent::Behaviour& behaviour = starter_.behaviours[""];
  behaviour.program = [&](ScriptedAgent& agent, const v1::Spawn& spawn) {
    agent.Started(spawn.worker());
    running->Interrupt(SIGINT);
  };
  behaviour.on_signal = [&](ScriptedAgent& agent, const v1::Signal& signal) {
    if (signal.signal() == SIGTERM) return running->Interrupt(SIGINT);
    agent.ExitedBySignal(signal.worker(), SIGKILL);
  };
  const Instant before = Now();
  const std::unique_ptr<DriverRuntime> runtime = Make(1, {{"a", 1}});
  running = runtime.get();
  EXPECT_EQ(runtime->Run().exit_code, 130);
  EXPECT_LT(Now() - before, options_.config.grace);
}

TEST_F(DriverRuntimeTest, WhatALibraryHasToSayIsALineOfItsWorker) {
  starter_.behaviours[""].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) {
    agent.Notice(spawn.worker(), "rank 1 was lost");
    ExitAtOnce(agent, spawn, 0);
  };
  Run(1, {{"a", 1}});
  EXPECT_EQ(sink_.text(0), "!farandole: rank 1 was lost\n$");
}

// A worker that writes four windows of output, as credit allows; the sink takes nothing until the driver has seen the
// failure of another worker. So a blocked terminal delays neither the failure nor the signals.
TEST_F(DriverRuntimeTest, ABlockedTerminalHoldsTheWriterAndNothingElse) {
  constexpr int kPiece = 64 << 10;
  constexpr int kPieces = 4 * (1 << 20) / kPiece;
  sink_.Close();
  ScriptedAgent::Behaviour& chatty = starter_.behaviours["a"];
  int64_t credit = 1 << 20, written = 0;
  bool told_to_end = false;
  v1::WorkerId writer;
  const auto write = [&](ScriptedAgent& agent) {
    for (; written < kPieces && credit >= kPiece; ++written, credit -= kPiece) {
      agent.Output(writer, std::string(kPiece, static_cast<char>('a' + written % 26)));
    }
    if (written == kPieces && told_to_end) {
      agent.OutputEnded(writer);
      agent.HangUp();
    }
  };
  chatty.program = [&](ScriptedAgent& agent, const v1::Spawn& spawn) {
    writer = spawn.worker();
    agent.Started(writer);
    write(agent);
  };
  chatty.on_credit = [&](ScriptedAgent& agent, const v1::OutputCredit& more) {
    credit += static_cast<int64_t>(more.bytes());
    write(agent);
  };
  chatty.on_signal = [&](ScriptedAgent& agent, const v1::Signal& signal) {
    EXPECT_EQ(sink_.text(0), "") << "the signal came while the terminal took nothing";
    EXPECT_LT(written, kPieces);
    agent.ExitedBySignal(signal.worker(), SIGTERM);
    sink_.Open();
  };
  chatty.on_end = [&](ScriptedAgent& agent, const v1::End&) {
    told_to_end = true;
    write(agent);
  };
  starter_.behaviours["b"].program = [&](ScriptedAgent& agent, const v1::Spawn& spawn) {
    EXPECT_TRUE(sink_.AwaitWriter());
    ExitAtOnce(agent, spawn, 5);
  };
  EXPECT_EQ(Run(2, {{"a", 1}, {"b", 1}}).exit_code, 5);
  std::string expected;
  for (int i = 0; i < kPieces; ++i) expected.append(kPiece, static_cast<char>('a' + i % 26));
  EXPECT_TRUE(sink_.text(0) == expected + "$") << sink_.text(0).size() << " bytes";
}

TEST_F(DriverRuntimeTest, AfterTheJobAnInterruptGivesUpOutputThatNobodyTakes) {
  sink_.Close();
  starter_.behaviours[""].program = [](ScriptedAgent& agent, const v1::Spawn& spawn) {
    agent.Output(spawn.worker(), "unread\n");
    ExitAtOnce(agent, spawn, 0);
  };
  const std::unique_ptr<DriverRuntime> runtime = Make(1, {{"a", 1}});
  std::thread person([&] {
    EXPECT_TRUE(sink_.AwaitWriter());
    runtime->Interrupt(SIGINT);
    runtime->Interrupt(SIGINT);
  });
  runtime->Run();
  person.join();
  EXPECT_TRUE(runtime->output_given_up());
  sink_.Open();  // lets the thread that was left behind end
  EXPECT_TRUE(sink_.AwaitText(0));
}

TEST_F(DriverRuntimeTest, ABadConfigurationIsToldWithAllItsProblems) {
  options_.config.np = 0;
  EXPECT_THAT(DriverRuntime::Create(options_),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("processes is 0"), HasSubstr("no hosts"))));
}

}  // namespace
}  // namespace farandole
