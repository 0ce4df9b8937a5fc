#include "worker/agent/worker_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "worker/agent/children.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

WorkerId Id(int slot) { return {SlotId{"a", slot}, Incarnation(100 + slot)}; }

Program Shell(const std::string& script) { return {{"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin"}, "/"}; }

// Workers of this process. Each test is one run of the loop, moved on by the events.
class WorkerProcessesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  void Run() {
    loop_.At(Now() + absl::Seconds(30), [this] {
      ADD_FAILURE() << "too late";
      loop_.Stop();
    });
    loop_.Run();
  }

  // The next line that the worker wrote. Blocks.
  std::string ReadLine(int slot) {
    std::string line;
    pollfd waiting{pipes_[slot].get(), POLLIN, 0};
    for (char byte; ::poll(&waiting, 1, 20'000) == 1 && ::read(waiting.fd, &byte, 1) == 1 && byte != '\n';)
      line += byte;
    return line;
  }

  // What the kernel would say.
  static void SetOomKills(const std::string& root, int count) {
    std::ofstream(root + "/proc/vmstat") << "oom_kill " << count << "\n";
  }
  static std::string MakeRoot() {
    const std::string root = absl::StrCat(::testing::TempDir(), "/worker_processes_test.", ::getpid());
    std::filesystem::create_directories(root + "/proc");
    SetOomKills(root, 0);
    return root;
  }

  EventLoop loop_;
  std::string root_ = MakeRoot();
  std::map<int, bool> out_of_memory_;
  std::map<int, UniqueFd> pipes_;
  std::map<int, ExitStatus> exits_;
  std::vector<std::pair<int, SpawnError>> failures_;
  std::function<void(int slot)> on_started_ = [](int) {};
  std::function<void(int slot)> on_exited_ = [](int) {};
  WorkerProcesses processes_{&loop_,
                             {[this](const WorkerId& worker, Process* process) {
                                pipes_[worker.slot.slot] = std::move(process->stdout_pipe);
                                on_started_(worker.slot.slot);
                              },
                              [this](const WorkerId& worker, const SpawnError& error) {
                                failures_.emplace_back(worker.slot.slot, error);
                                on_exited_(worker.slot.slot);
                              },
                              [this](const WorkerId& worker, ExitStatus status, bool out_of_memory) {
                                exits_[worker.slot.slot] = status;
                                out_of_memory_[worker.slot.slot] = out_of_memory;
                                on_exited_(worker.slot.slot);
                              }},
                             OomWatch(root_)};
};

// Whether `pid` ends, by itself or because it was killed.
bool Ends(pid_t pid) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return errno == ESRCH;
  pollfd waiting{pidfd.get(), POLLIN, 0};
  return ::poll(&waiting, 1, 20'000) == 1;
}

TEST_F(WorkerProcessesTest, ReportsEveryKindOfEnd) {
  on_exited_ = [this](int) {
    if (processes_.size() == 0) loop_.Stop();
  };
  processes_.Start(Id(0), Shell("exit 0"));
  processes_.Start(Id(1), Shell("exit 255"));
  processes_.Start(Id(2), Shell("kill -SEGV $$"));
  processes_.Start(Id(3), Program{{"/no/such/program"}, {}, "/"});
  EXPECT_EQ(processes_.size(), 4);
  Run();
  EXPECT_EQ(exits_[0], (ExitStatus{0, 0}));
  EXPECT_EQ(exits_[1], (ExitStatus{255, 0}));
  EXPECT_EQ(exits_[2], (ExitStatus{0, SIGSEGV}));
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].second.error, ENOENT);
  EXPECT_EQ(failures_[0].second.what, "/no/such/program");
  EXPECT_THAT(ChildrenOfThisProcess(), IsEmpty());
}

TEST_F(WorkerProcessesTest, TermReachesTheWorkerAloneAndItsEndItsHelpers) {
  pid_t helper = 0;
  on_started_ = [this, &helper](int) {
    helper = std::stoi(ReadLine(0));
    processes_.Signal(Incarnation(100), SIGTERM);
  };
  on_exited_ = [this](int) { loop_.Stop(); };
  // The worker looks after its helper on TERM; had that got the signal too, it would be gone.
  processes_.Start(Id(0),
                   Shell("sleep 1000 & helper=$!; trap 'kill -0 $helper && echo lives; exit 5' TERM; echo $helper; "
                         "wait"));
  Run();
  EXPECT_EQ(ReadLine(0), "lives");
  EXPECT_EQ(exits_[0], (ExitStatus{5, 0}));
  EXPECT_TRUE(Ends(helper));
}

TEST_F(WorkerProcessesTest, KillReachesTheWholeGroup) {
  pid_t helper = 0;
  on_started_ = [this, &helper](int) {
    helper = std::stoi(ReadLine(0));
    processes_.SignalAll(SIGKILL);
  };
  on_exited_ = [this](int) { loop_.Stop(); };
  processes_.Start(Id(0), Shell("trap '' TERM INT; sleep 1000 & echo $!; wait"));
  Run();
  EXPECT_EQ(exits_[0], (ExitStatus{0, SIGKILL}));
  EXPECT_TRUE(Ends(helper));
}

TEST_F(WorkerProcessesTest, AKillBeforeTheProgramRunsIsAnEndToo) {
  on_exited_ = [this](int) { loop_.Stop(); };
  processes_.Start(Id(0), Shell("sleep 1000"));
  processes_.Signal(Incarnation(100), SIGKILL);
  Run();
  EXPECT_EQ(exits_[0], (ExitStatus{0, SIGKILL}));
}

TEST_F(WorkerProcessesTest, WhatWasPostedBeforeAnEndComesFirst) {
  std::vector<std::string> order;
  // The loop finds the end of the process and what was posted in one round.
  on_started_ = [&](int) {
    EXPECT_TRUE(Ends(std::stoi(ReadLine(0))));
    loop_.Post([&] { order.push_back("said"); });
  };
  on_exited_ = [&](int) {
    order.push_back("exited");
    loop_.Stop();
  };
  processes_.Start(Id(0), Shell("echo $$"));
  Run();
  EXPECT_THAT(order, ElementsAre("said", "exited"));
}

TEST_F(WorkerProcessesTest, AKillThatTheKernelCountedAndWeDidNotSendWasForWantOfMemory) {
  on_started_ = [this](int slot) {
    if (slot == 3) processes_.Signal(Incarnation(103), SIGKILL);
  };
  on_exited_ = [this](int slot) {
    if (slot == 3) return loop_.Stop();
    SetOomKills(root_, slot == 2 ? 2 : 1);
    constexpr const char* kNext[] = {"kill -TERM $$", "kill -KILL $$", "sleep 1000"};
    processes_.Start(Id(slot + 1), Shell(kNext[slot]));
  };
  processes_.Start(Id(0), Shell("kill -KILL $$"));
  Run();
  EXPECT_EQ(out_of_memory_, (std::map<int, bool>{{0, false}, {1, false}, {2, true}, {3, false}}));
}

TEST_F(WorkerProcessesTest, StraysInTheirOwnSessionsAreFoundAndKilled) {
  std::vector<pid_t> strays;
  on_started_ = [&](int) {
    for (int i = 0; i < 2; ++i) strays.push_back(std::stoi(ReadLine(0)));
    processes_.SignalAll(SIGTERM);
  };
  on_exited_ = [&](int) {
    for (const pid_t stray : strays) EXPECT_EQ(::kill(stray, 0), 0) << "it has left the group and lives";
    processes_.KillStrays(Now() + absl::Seconds(20), [this] { loop_.Stop(); });
  };
  // A daemon with a child in yet another session: killing the first brings the second here.
  processes_.Start(
      Id(0), Shell("trap 'exit 0' TERM; "
                   "setsid sh -c \"trap '' TERM; echo \\$\\$; setsid sh -c 'echo \\$\\$; exec sleep 1000' & wait\" & "
                   "wait"));
  Run();
  ASSERT_EQ(strays.size(), 2u);
  for (const pid_t stray : strays) EXPECT_TRUE(::kill(stray, 0) != 0 && errno == ESRCH) << stray << " was not reaped";
  EXPECT_THAT(ChildrenOfThisProcess(), IsEmpty());
}

}  // namespace
}  // namespace farandole
