#include "launcher/exec/local_starter.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kFakeAgent[] = "launcher/exec/fake_agent";
constexpr absl::Duration kLongEnough = absl::Seconds(30);

// A starter and what it told, by host.
class LocalStarterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    LocalStarterOptions options;
    options.agent_program = kFakeAgent;
    options.grace = absl::Milliseconds(2500);
    options.patience = absl::Milliseconds(10);
    options.data_address = [](const std::string& host) { return absl::StrCat("address-of-", host); };
    options.on_line = [this](const std::string& host, absl::string_view line) {
      MutexLock lock(&mutex_);
      lines_[host].emplace_back(line);
      changed_.NotifyAll();
    };
    Make(std::move(options));
  }

  void Make(LocalStarterOptions options) { ASSERT_OK_AND_ASSIGN(starter_, LocalStarter::Create(std::move(options))); }

  void Start(const std::string& host) {
    AgentStart start;
    start.job = "j1";
    start.host = host;
    start.incarnation = Incarnation(77);
    start.local_address = "unix-abstract:driver";
    start.job_key = std::string(32, '\0');
    AgentStartEvents events;
    events.reached = [this, host](HostStep step, const std::string&) {
      MutexLock lock(&mutex_);
      steps_[host].push_back(step);
    };
    events.failed = [this, host](const absl::Status& status) {
      MutexLock lock(&mutex_);
      EXPECT_EQ(failures_.count(host), 0u) << "told twice";
      failures_[host] = status;
      changed_.NotifyAll();
    };
    starter_->Start(start, std::move(events));
  }

  std::vector<std::string> Lines(const std::string& host, size_t count) {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(changed_.AwaitUntil(&mutex_, Now() + kLongEnough,
                                    [&] {
                                      mutex_.AssertHeld();
                                      return lines_[host].size() >= count;
                                    }))
        << "no " << count << " lines of " << host;
    return lines_[host];
  }

  absl::Status Failure(const std::string& host) {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(changed_.AwaitUntil(&mutex_, Now() + kLongEnough,
                                    [&] {
                                      mutex_.AssertHeld();
                                      return failures_.count(host) > 0;
                                    }))
        << "no end of " << host;
    return failures_[host];
  }

  bool Failed(const std::string& host) {
    MutexLock lock(&mutex_);
    return failures_.count(host) > 0;
  }

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::vector<std::string>> lines_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<HostStep>> steps_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<LocalStarter> starter_;  // ends first
};

bool IsGone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

TEST_F(LocalStarterTest, AnAgentGetsItsBootstrapInASessionOfItsOwn) {
  Start("waits");
  EXPECT_EQ(
      Lines("waits", 1)[0],
      "job j1 incarnation 77 driver unix-abstract:driver key 32 data address-of-waits grace 2.500000000 leader 1");
  EXPECT_FALSE(Failed("waits"));
}

TEST_F(LocalStarterTest, AnAgentThatEndsIsToldWithItsCodeAndItsLastWords) {
  Start("exits");
  EXPECT_THAT(Failure("exits"),
              StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr("the agent ended with exit code 7; it said: "),
                                                             HasSubstr(" | cannot reach | the driver"))));
}

TEST_F(LocalStarterTest, KillEndsTheAgentOfThatHostOnly) {
  Start("deaf");
  Start("waits");
  Lines("deaf", 1);
  Lines("waits", 1);
  starter_->Kill("deaf");
  EXPECT_THAT(Failure("deaf"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the agent was ended by SIGKILL")));
  EXPECT_FALSE(Failed("waits"));
}

TEST_F(LocalStarterTest, WhatAKilledAgentLeftBehindIsGone) {
  Start("leaves");
  std::vector<pid_t> family;
  for (const std::string& line : Lines("leaves", 3)) {
    int pid = 0;
    if (absl::SimpleAtoi(absl::StripPrefix(line, "child "), &pid)) family.push_back(pid);
  }
  ASSERT_EQ(family.size(), 2u);
  EXPECT_FALSE(IsGone(family[0]));
  EXPECT_FALSE(IsGone(family[1]));
  starter_->Kill("leaves");
  EXPECT_FALSE(Failure("leaves").ok());
  starter_ = nullptr;
  EXPECT_TRUE(IsGone(family[0]));
  EXPECT_TRUE(IsGone(family[1]));
}

TEST_F(LocalStarterTest, AnAgentThatDoesNotEndIsKilledAtTheEnd) {
  Start("deaf");
  Lines("deaf", 1);
  starter_ = nullptr;
  EXPECT_THAT(Failure("deaf"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("SIGKILL")));
}

TEST_F(LocalStarterTest, AProgramThatIsNotThereIsToldWithItsPath) {
  starter_ = nullptr;
  LocalStarterOptions options;
  options.agent_program = "/nowhere/farandole-agent";
  options.data_address = [](const std::string&) { return ""; };
  Make(std::move(options));
  Start("a");
  EXPECT_THAT(Failure("a"), StatusIs(absl::StatusCode::kNotFound,
                                     "execute the agent /nowhere/farandole-agent: No such file or directory"));
}

TEST_F(LocalStarterTest, AnAgentThatDiesBeforeItHasReadIsToldByItsEnd) {
  starter_ = nullptr;
  LocalStarterOptions options;
  options.agent_program = "/bin/false";
  options.data_address = [](const std::string&) { return ""; };
  Make(std::move(options));
  Start("a");
  EXPECT_THAT(Failure("a"), StatusIs(absl::StatusCode::kUnavailable, "the agent ended with exit code 1"));
}

TEST(LocalStarter, LeavesChildrenFromBeforeAlone) {
  const pid_t before = ::fork();
  if (before == 0) {
    while (true) ::pause();
  }
  {
    LocalStarterOptions options;
    options.agent_program = kFakeAgent;
    options.data_address = [](const std::string&) { return ""; };
    ASSERT_OK_AND_ASSIGN(const auto starter, LocalStarter::Create(std::move(options)));
    Mutex mutex;
    CondVar changed;
    bool ended = false;
    AgentStart start;
    start.job = "j";
    start.host = "exits";
    start.incarnation = Incarnation(1);
    AgentStartEvents events;
    events.reached = [](HostStep, const std::string&) {};
    events.failed = [&](const absl::Status&) {
      MutexLock lock(&mutex);
      ended = true;
      changed.NotifyAll();
    };
    starter->Start(start, std::move(events));
    MutexLock lock(&mutex);
    EXPECT_TRUE(changed.AwaitUntil(&mutex, Now() + kLongEnough, [&] { return ended; }));
  }
  EXPECT_FALSE(IsGone(before));
  ::kill(before, SIGKILL);
  EXPECT_EQ(::waitpid(before, nullptr, 0), before);
}

TEST(FindAgentProgram, TakesTheGivenOneAndSaysWhereItLooked) {
  EXPECT_THAT(FindAgentProgram("/bin/true"), ::farandole::testing::IsOkAndHolds(std::string("/bin/true")));
  EXPECT_THAT(FindAgentProgram("/nowhere/agent"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("the agent's program /nowhere/agent: No such file or directory; it belongs beside")));
  EXPECT_THAT(FindAgentProgram("/etc/passwd"), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("/etc/passwd")));
  EXPECT_THAT(FindAgentProgram(""), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/farandole-agent: ")));
}

}  // namespace
}  // namespace farandole
