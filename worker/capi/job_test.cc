// The C interface in several processes of one job. This program is also what those processes run
// (testing/job_worker.h), told by JOB_TEST_ROLE; their agent is a fake one in the test's process.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"
#include "worker/capi/testing/job_worker.h"
#include "worker/runtime/testing/fake_agent.h"

namespace farandole {
namespace {

using ::farandole::testing::FakeAgent;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRole[] = "JOB_TEST_ROLE";
constexpr absl::Duration kLong = absl::Seconds(60);

// One process of the job. Killed, if it still runs, when it goes out of scope.
class Process {
 public:
  Process(const std::string& role, std::vector<std::string> environment) {
    environment.push_back(absl::StrCat(kRole, "=", role));
    std::vector<char*> pointers;
    for (std::string& variable : environment) pointers.push_back(variable.data());
    pointers.push_back(nullptr);
    int in[2];
    int out[2];
    EXPECT_TRUE(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0);
    const UniqueFd its_input(in[0]);
    const UniqueFd its_output(out[1]);
    input_.reset(in[1]);
    output_.reset(out[0]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, its_input.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, its_output.get(), STDOUT_FILENO);
    char name[] = "job_test_worker";
    char* arguments[] = {name, nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments, pointers.data()), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), input_(std::move(other.input_)), output_(std::move(other.output_)) {}
  ~Process() {
    if (pid_ == 0) return;
    Kill();
    Wait();
  }

  void Kill() { ::kill(pid_, SIGKILL); }

  void EndInput() { input_.reset(); }

  // Its next line of output, without the end; empty when there is none.
  std::string ReadLine() {
    std::string line;
    for (char c; ::read(output_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  // Its exit code, or 128 + the signal that ended it. The test's own time-out ends a wait for one that hangs.
  int Wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(std::exchange(pid_, 0), &status, 0) > 0, true);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  UniqueFd input_;
  UniqueFd output_;
};

class Job : public ::testing::TestWithParam<const char*> {
 protected:
  void StartAgent(int size) {
    auto agent = FakeAgent::Start(size);
    ASSERT_OK(agent);
    agent_ = *std::move(agent);
  }

  std::vector<Process> Start(const std::string& role, int size) {
    StartAgent(size);
    std::vector<Process> processes;
    for (int i = 0; i < size; ++i) processes.push_back(StartWorker(role, i));
    return processes;
  }

  Process StartWorker(const std::string& role, int index) {
    std::vector<std::string> environment = {
        absl::StrCat("FARANDOLE_AGENT=", agent_->address()),
        absl::StrFormat("FARANDOLE_WORKER=%016x", agent_->workers()[index].value()),
        absl::StrCat("FARANDOLE_TRANSPORT=", GetParam()),
    };
    for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TMPDIR"}) {
      if (const char* value = std::getenv(name)) environment.push_back(absl::StrCat(name, "=", value));
    }
    return Process(role, std::move(environment));
  }

  static std::vector<int> Wait(std::vector<Process>* processes) {
    std::vector<int> codes;
    for (Process& process : *processes) codes.push_back(process.Wait());
    return codes;
  }

  std::vector<int> Run(const std::string& role, int size) {
    std::vector<Process> processes = Start(role, size);
    return Wait(&processes);
  }

  std::unique_ptr<FakeAgent> agent_;
};

INSTANTIATE_TEST_SUITE_P(Transports, Job, ::testing::Values("shm", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Job, EveryOperationGivesEveryRankTheSame) {
  for (const int size : {2, 3}) EXPECT_THAT(Run("operations", size), Each(0)) << size << " ranks";
  EXPECT_TRUE(agent_->AwaitLeft(3, Now() + kLong));
}

TEST_P(Job, OperationsOfTheOtherKinds) {
  for (const int size : {2, 3}) EXPECT_THAT(Run("other_operations", size), Each(0)) << size << " ranks";
}

TEST_P(Job, ProcessSetsThatOverlapComeAndGo) { EXPECT_THAT(Run("process_sets", 3), Each(0)); }

TEST_P(Job, RanksThatWantOtherProcessSetsAreTold) { EXPECT_THAT(Run("process_sets_differ", 3), Each(0)); }

TEST_P(Job, AMismatchIsAnErrorEverywhereAndTheJobGoesOn) { EXPECT_THAT(Run("mismatch", 3), Each(0)); }

TEST_P(Job, ShutdownOfOneFailsWhatTheOthersWaitFor) { EXPECT_THAT(Run("shutdown", 3), Each(0)); }

TEST_P(Job, ComesBackInANewGeneration) { EXPECT_THAT(Run("init_again", 3), Each(0)); }

TEST_P(Job, EndsWithoutShutdown) {
  std::vector<Process> processes = Start("no_shutdown", 3);
  for (Process& process : processes) ASSERT_EQ(process.ReadLine(), "done");
  for (Process& process : processes) process.EndInput();
  EXPECT_THAT(Wait(&processes), Each(0));
}

TEST_P(Job, ForkedChildrenEndWhileTheJobGoesOn) { EXPECT_THAT(Run("fork", 2), Each(0)); }

TEST_P(Job, InitWaitsInSlicesForTheLastWorker) {
  StartAgent(3);
  std::vector<Process> processes;
  processes.push_back(StartWorker("init_in_slices", 0));
  processes.push_back(StartWorker("init_in_slices", 1));
  ASSERT_TRUE(agent_->AwaitJoined(2, Now() + kLong));
  processes.push_back(StartWorker("init_in_slices", 2));
  EXPECT_THAT(Wait(&processes), Each(0));
}

TEST_P(Job, InitReturnsSoonAfterTheLastCall) {
  std::vector<Process> processes = Start("time_init", 4);
  long long last_called = 0, last_returned = 0;
  for (Process& process : processes) {
    long long called = 0, returned = 0;
    const std::string line = process.ReadLine();
    ASSERT_EQ(std::sscanf(line.c_str(), "%lld %lld", &called, &returned), 2) << line;
    last_called = std::max(last_called, called);
    last_returned = std::max(last_returned, returned);
  }
  EXPECT_THAT(Wait(&processes), Each(0));
  const double milliseconds = (last_returned - last_called) / 1e6;
  std::printf("init of 4 ranks over %s returned %.1f ms after the last call\n", GetParam(), milliseconds);
  // 100 ms is the promise; under a sanitizer and beside a compiler it may take longer, but never seconds.
  EXPECT_LT(milliseconds, 5000);
}

TEST_P(Job, ALostPeerEndsWhatTheOthersWaitForAndIsReported) {
  std::vector<Process> processes = Start("lose_peer", 3);
  for (Process& process : processes) ASSERT_EQ(process.ReadLine(), "ready");
  processes[1].Kill();
  EXPECT_THAT(Wait(&processes), ElementsAre(0, 128 + SIGKILL, 0));
  const std::vector<std::string> reports = agent_->AwaitReports(2, Now() + kLong);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_THAT(reports, Each(HasSubstr("rank 1")));
}

TEST_P(Job, ALostAgentEndsEverythingOnce) {
  std::vector<Process> processes = Start("lose_agent", 2);
  for (Process& process : processes) ASSERT_EQ(process.ReadLine(), "ready");
  agent_->Die();
  EXPECT_THAT(Wait(&processes), Each(0));
}

}  // namespace
}  // namespace farandole

int main(int argc, char** argv) {
  if (const char* role = std::getenv(farandole::kRole)) return farandole::testing::RunJobWorker(role);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
