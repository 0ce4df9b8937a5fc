// How an agent ends, and that nothing of the job is left then.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/v1/bootstrap.pb.h"
#include "worker/agent/testing/agent_fixture.h"
#include "worker/agent/testing/agent_process.h"

namespace farandole {
namespace {

using ::farandole::testing::AgentProcess;
using ::farandole::testing::AgentTest;
using ::farandole::testing::Ends;
using ::farandole::testing::FakeDriver;
using ::farandole::testing::HasOutputEnded;
using ::farandole::testing::kOut;
using ::farandole::testing::kStubborn;
using ::farandole::testing::Messages;
using ::testing::HasSubstr;

TEST_F(AgentTest, ALostDriverTakesEverythingWithIt) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  SpawnShell(1, "trap 'exit 0' TERM; while :; do wait; done");
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  driver_ = nullptr;
  EXPECT_EQ(agent_->Wait(), 1);
  for (const pid_t pid : pids) EXPECT_TRUE(Ends(pid)) << pid;
}

TEST_F(AgentTest, AClosedStandardInputTakesEverythingWithIt) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  agent_->CloseInput();
  EXPECT_EQ(agent_->Wait(), 1);
  for (const pid_t pid : pids) EXPECT_TRUE(Ends(pid)) << pid;
}

TEST_F(AgentTest, AClosedStandardInputThatMayEndIsNoSign) {
  v1::AgentBootstrap bootstrap = Bootstrap();
  bootstrap.set_input_may_end(true);
  agent_ = std::make_unique<AgentProcess>(bootstrap.SerializeAsString());
  ASSERT_TRUE(driver_->Await([](const Messages& messages) { return !messages.empty(); })) << agent_->Said();
  agent_->CloseInput();
  Welcome(1 << 20);
  SpawnShell(0, "echo here; exit 3");
  ASSERT_TRUE(AwaitOutputEnded(0));
  EXPECT_EQ(Status(0).code(), 3u);
  EndAndExpectZero();
}

TEST_F(AgentTest, SigtermEndsItInOrderAndIsReported) {
  StartAndWelcome();
  SpawnShell(0, "trap 'echo saved; exit 6' TERM; echo here; while :; do wait; done");
  AwaitLines(0, 1);
  agent_->Signal(SIGTERM);
  EXPECT_TRUE(driver_->AwaitStreamEnd());
  EXPECT_EQ(agent_->Wait(), 1);
  EXPECT_EQ(Status(0).code(), 6u);
  EXPECT_EQ(driver_->Output(0, kOut), "here\nsaved\n");
  EXPECT_TRUE(HasOutputEnded(driver_->Messages(), 0));
}

TEST_F(AgentTest, AKilledAgentTakesItsWorkersWithIt) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  agent_->Signal(SIGKILL);
  EXPECT_EQ(agent_->Wait(), -SIGKILL);
  EXPECT_TRUE(Ends(pids[0])) << "the kernel's word";
  // What the worker itself had started has come to us, as it would to the launcher.
  for (const pid_t pid : {pids[1], pids[2]}) {
    EXPECT_EQ(::kill(pid, SIGKILL), 0);
    EXPECT_TRUE(Ends(pid));
    EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  }
}

TEST_F(AgentTest, TheEndFindsWhatHasLeftItsGroup) {
  StartAndWelcome();
  SpawnShell(0, "setsid sh -c 'echo $$; exec sleep 1000' & trap 'exit 0' TERM; while :; do wait; done");
  const pid_t daemon = AwaitPids(0, 1)[0];
  Signal(0, SIGTERM);
  ASSERT_TRUE(AwaitOutputEnded(0)) << "the daemon has the pipe, but not for long";
  EXPECT_EQ(::kill(daemon, 0), 0) << "it is not the worker, and the job goes on";
  EndAndExpectZero();
  EXPECT_TRUE(::kill(daemon, 0) != 0 && errno == ESRCH);
}

TEST_F(AgentTest, TheEndKillsAtOnceAndSendsWhatWasWritten) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  EndAndExpectZero();
  EXPECT_EQ(Status(0).signal(), static_cast<uint32_t>(SIGKILL));
  EXPECT_TRUE(HasOutputEnded(driver_->Messages(), 0));
  for (const pid_t pid : pids) EXPECT_TRUE(::kill(pid, 0) != 0 && errno == ESRCH) << pid;
}

TEST_F(AgentTest, AWorkerThatSavesOnTermHasTheWholeGraceOnEveryPath) {
  const std::vector<std::function<void()>> paths = {[this] { driver_ = nullptr; }, [this] { agent_->CloseInput(); },
                                                    [this] { agent_->Signal(SIGTERM); },
                                                    [this] {
                                                      agent_->CloseInput();
                                                      agent_->Signal(SIGTERM);
                                                      driver_ = nullptr;
                                                    }};
  grace_ms_ = 20'000;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string file = absl::StrCat(::testing::TempDir(), "/saved.", ::getpid(), ".", i);
    driver_ = FakeDriver::Start();
    StartAndWelcome();
    SpawnShell(0,
               absl::StrCat("trap 'sleep 0.7; echo all > ", file, "; exit 0' TERM; echo here; while :; do wait; done"));
    AwaitLines(0, 1);
    paths[i]();
    EXPECT_EQ(agent_->Wait(), 1);
    std::string saved;
    std::ifstream(file) >> saved;
    EXPECT_EQ(saved, "all") << i;
    ::unlink(file.c_str());
  }
}

class GuardedAgentTest : public AgentTest {
 protected:
  GuardedAgentTest() { option_ = "--guard"; }
};

TEST_F(GuardedAgentTest, ServesAndPassesItsExitCodeOn) {
  StartAndWelcome();
  EXPECT_NE(AgentPid(), agent_->pid());
  SpawnShell(0, "exit 3");
  ASSERT_TRUE(AwaitOutputEnded(0));
  EndAndExpectZero();
  driver_ = FakeDriver::Start();
  StartAndWelcome();
  agent_->Signal(SIGTERM);
  EXPECT_EQ(agent_->Wait(), 1);
  EXPECT_THAT(agent_->Said(), HasSubstr("got SIGTERM"));
}

TEST_F(GuardedAgentTest, AKilledAgentLeavesNothing) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  ASSERT_EQ(::kill(AgentPid(), SIGKILL), 0);
  EXPECT_EQ(agent_->Wait(), 128 + SIGKILL);
  for (const pid_t pid : pids) EXPECT_TRUE(::kill(pid, 0) != 0 && errno == ESRCH) << pid;
  EXPECT_THAT(agent_->Said(), HasSubstr("was ended by signal 9 (KILL)"));
}

TEST_F(GuardedAgentTest, AKilledGuardianEndsItsAgentInOrder) {
  StartAndWelcome();
  SpawnShell(0, "trap 'echo saved; exit 6' TERM; echo here; while :; do wait; done");
  SpawnShell(1, kStubborn);
  AwaitLines(0, 1);
  const std::vector<pid_t> pids = AwaitPids(1, 3);
  const pid_t agent = AgentPid();
  agent_->Signal(SIGKILL);
  EXPECT_EQ(agent_->Wait(), -SIGKILL);
  EXPECT_TRUE(driver_->AwaitStreamEnd());
  EXPECT_TRUE(Ends(agent));
  EXPECT_EQ(::waitpid(agent, nullptr, 0), agent) << "it came to us";
  EXPECT_EQ(Status(0).code(), 6u);
  for (const pid_t pid : pids) EXPECT_TRUE(::kill(pid, 0) != 0 && errno == ESRCH) << pid;
}

TEST_F(GuardedAgentTest, AClosedStandardInputIsTheAgentsToSee) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  agent_->CloseInput();
  EXPECT_EQ(agent_->Wait(), 1);
  for (const pid_t pid : pids) EXPECT_TRUE(::kill(pid, 0) != 0 && errno == ESRCH) << pid;
}

}  // namespace
}  // namespace farandole
