#include "launcher/exec/ssh_starter.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/exec/own_addresses.h"
#include "launcher/ssh/child_process.h"
#include "launcher/ssh/libssh_connector.h"
#include "launcher/ssh/openssh_connector.h"
#include "launcher/ssh/testing/fake_connector.h"
#include "launcher/ssh/testing/ssh_server.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::farandole::testing::SshServer;
using ::farandole::testing::StatusIs;
using ::farandole::testing::WriteWhole;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLongEnough = absl::Seconds(60);

// Says its number and how many bytes its bootstrap has, and does what the folder of the test says.
constexpr char kAgentText[] = R"(#!/bin/sh
if [ "$1" = --version ]; then exit 0; fi
if [ -e "$HOME/dies" ]; then echo cannot do it >&2; exit 9; fi
echo pid $$
head -c 4 >/dev/null; echo bootstrap
if [ -e "$HOME/deaf" ]; then trap "" USR1; mkfifo "$HOME/never"; read line < "$HOME/never"; fi
cat >/dev/null; exit 0
)";

class SshStarterTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    char path[] = "/tmp/farandole-starter-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    home_ = path;
    WriteWhole(home_ + "/agent", kAgentText);
    const std::string home = absl::StrCat("HOME=", home_);
    if (GetParam() == "fake") {
      connector_ =
          ::farandole::testing::MakeFakeConnector({"/bin/sh", EnvironmentWith({"HOME", "XDG_CACHE_HOME"}, {home})});
    } else {
      if (!SshServer::Missing().empty()) GTEST_SKIP() << SshServer::Missing();
      ASSERT_OK_AND_ASSIGN(server_, SshServer::Start({{home}, {}}));
      connector_ =
          GetParam() == "libssh" ? MakeLibsshConnector(server_->files()) : MakeOpensshConnector(server_->files());
    }
    SshStarterOptions options;
    options.connector = connector_.get();
    options.target = [this](const std::string& host) {
      RemoteTarget target = server_ == nullptr || absl::StartsWith(host, "away") ? RemoteTarget() : server_->target();
      if (target.host.empty())
        target.host = server_ == nullptr && absl::StartsWith(host, "away") ? "away" : host + ".invalid";
      return target;
    };
    options.agent_program = home_ + "/agent";
    options.grace = absl::Seconds(5);
    options.parallel = 2;
    options.patience = absl::Seconds(1);
    options.via = [this](const std::string& host) {
      const auto it = via_.find(host);
      return it == via_.end() ? std::string() : it->second;
    };
    options.on_line = [this](const std::string& host, absl::string_view line) {
      MutexLock lock(&mutex_);
      lines_[host].emplace_back(line);
      changed_.NotifyAll();
    };
    ASSERT_OK_AND_ASSIGN(starter_, SshStarter::Create(std::move(options)));
  }

  void TearDown() override {
    starter_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(home_, ignored);
  }

  void Begin(const std::string& host) {
    AgentStart start;
    start.job = "j1";
    start.host = host;
    start.incarnation = Incarnation(7);
    start.job_key = std::string(32, 'k');
    start.listen = [this](const std::string& address) -> absl::StatusOr<std::string> {
      MutexLock lock(&mutex_);
      listened_.push_back(address);
      return address + ":1";
    };
    start.open_relay = [this](const std::string& via, const std::string& address, int port, Instant,
                              AgentStart::RelayDone done) {
      {
        MutexLock lock(&mutex_);
        relays_.push_back(absl::StrCat(via, " to ", address, " port ", port));
        changed_.NotifyAll();
      }
      if (relay_answer_) {
        done(relay_answer_());
      } else {
        unanswered_ = std::move(done);
      }
    };
    AgentStartEvents events;
    events.reached = [this, host](HostStep step, const std::string& note) {
      MutexLock lock(&mutex_);
      steps_[host].push_back(absl::StrCat(ToString(step), note.empty() ? "" : ": ", note));
      changed_.NotifyAll();
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
    EXPECT_TRUE(changed_.AwaitUntil(&mutex_, Now() + kLongEnough, [&] {
      mutex_.AssertHeld();
      return lines_[host].size() >= count || failures_.count(host) > 0;
    }));
    EXPECT_GE(lines_[host].size(), count) << failures_[host];
    return lines_[host];
  }

  // Once the host has been at a step with this in its text.
  std::vector<std::string> StepsUntil(const std::string& host, const std::string& text) {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(changed_.AwaitUntil(&mutex_, Now() + kLongEnough,
                                    [&] {
                                      mutex_.AssertHeld();
                                      return std::any_of(
                                          steps_[host].begin(), steps_[host].end(),
                                          [&](const std::string& step) { return absl::StrContains(step, text); });
                                    }))
        << "no step with " << text;
    return steps_[host];
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

  std::vector<std::string> Relays() {
    MutexLock lock(&mutex_);
    return relays_;
  }

  static pid_t PidIn(const std::string& line) {
    int pid = 0;
    EXPECT_TRUE(absl::SimpleAtoi(line.substr(line.find(' ') + 1), &pid)) << line;
    return pid;
  }

  std::string home_;
  std::unique_ptr<SshServer> server_;
  std::unique_ptr<RemoteConnector> connector_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::vector<std::string>> lines_ ABSL_GUARDED_BY(mutex_), steps_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> listened_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> via_;  // by host; set before it begins
  std::function<absl::StatusOr<UniqueFd>()> relay_answer_;
  AgentStart::RelayDone unanswered_;
  std::vector<std::string> relays_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<SshStarter> starter_;
};

bool IsGone(pid_t pid) {
  // A zombie that nobody has collected yet is gone too.
  const std::string stat = ::farandole::testing::ReadWhole(absl::StrCat("/proc/", pid, "/stat"));
  return stat.empty() || absl::StrContains(stat, ") Z ");
}

TEST_P(SshStarterTest, AnAgentIsStartedStepByStepAndGetsItsBootstrap) {
  Begin("one");
  EXPECT_THAT(StepsUntil("one", "call back"), ElementsAre("resolve", "connect", "authenticate", "agent", "call back"));
  EXPECT_THAT(Lines("one", 2), Contains("bootstrap"));
  EXPECT_FALSE(Failed("one"));
  MutexLock lock(&mutex_);
  EXPECT_FALSE(listened_.empty());
  if (GetParam() != "fake") {
    EXPECT_THAT(listened_, ElementsAre("127.0.0.1"));
  }
}

TEST_P(SshStarterTest, KillEndsAnAgentByTheEndOfItsInputAndNoOther) {
  Begin("one");
  Begin("two");
  const pid_t one = PidIn(Lines("one", 2)[0]), two = PidIn(Lines("two", 2)[0]);
  starter_->Kill("one");
  EXPECT_THAT(Failure("one"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the agent ended with exit code 0")));
  EXPECT_TRUE(IsGone(one));
  EXPECT_FALSE(IsGone(two));
  EXPECT_FALSE(Failed("two"));
}

TEST_P(SshStarterTest, AnAgentThatDoesNotEndIsKilled) {
  WriteWhole(home_ + "/deaf", "");
  Begin("one");
  const pid_t pid = PidIn(Lines("one", 2)[0]);
  starter_->Kill("one");
  // OpenSSH tells no signal.
  const char* const how =
      GetParam() == "openssh" ? "the agent ended with exit code 255" : "the agent was ended by SIGKILL";
  EXPECT_THAT(Failure("one"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(how)));
  EXPECT_TRUE(IsGone(pid));
}

TEST_P(SshStarterTest, AnAgentThatDiesAtOnceIsToldWithItsLastWords) {
  WriteWhole(home_ + "/dies", "");
  Begin("one");
  EXPECT_THAT(Failure("one"),
              StatusIs(absl::StatusCode::kUnavailable, "the agent ended with exit code 9; it said: cannot do it"));
}

TEST_P(SshStarterTest, WhatMayPassIsTriedAgainUntilKill) {
  Begin("away");
  StepsUntil("away", "(attempt 2)");
  EXPECT_FALSE(Failed("away"));
  starter_->Kill("away");
  EXPECT_THAT(Failure("away"), StatusIs(absl::StatusCode::kCancelled,
                                        AllOf(HasSubstr("given up at the step"), HasSubstr("the last reason: "))));
}

TEST_P(SshStarterTest, HostsThatAreAwayTakeNoPlaceFromOthers) {
  for (const char* host : {"away", "away2", "away3"}) Begin(host);
  Begin("one");
  Lines("one", 2);
}

TEST_P(SshStarterTest, TheEndOfTheStarterEndsAllAndLeavesNobody) {
  Begin("away");
  Begin("one");
  Begin("two");
  const pid_t one = PidIn(Lines("one", 2)[0]), two = PidIn(Lines("two", 2)[0]);
  Begin("three");  // however far it comes
  starter_.reset();
  EXPECT_TRUE(IsGone(one));
  EXPECT_TRUE(IsGone(two));
  for (const char* host : {"away", "one", "two", "three"}) EXPECT_TRUE(Failed(host)) << host;
}

INSTANTIATE_TEST_SUITE_P(All, SshStarterTest, ::testing::Values("fake", "libssh", "openssh"),
                         [](const auto& info) { return info.param; });

// Hosts that are reached through others.
class SshTreeTest : public SshStarterTest {
 protected:
  static absl::StatusOr<UniqueFd> AnyStream() { return UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)); }
  bool AwaitRelays(size_t count) {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + kLongEnough, [&] {
      mutex_.AssertHeld();
      return relays_.size() >= count;
    });
  }
};

TEST_P(SshTreeTest, AHostWaitsForTheOneItIsReachedThrough) {
  via_["two"] = "one";
  relay_answer_ = AnyStream;
  Begin("two");
  StepsUntil("two", "connect: waits for host one");
  EXPECT_THAT(Relays(), ElementsAre());
  Begin("one");
  Lines("two", 2);
  EXPECT_THAT(Relays(), ElementsAre("one to 192.0.2.1 port 22"));
  EXPECT_THAT(StepsUntil("two", "call back"),
              ElementsAre("connect: waits for host one", "resolve", "connect", "authenticate", "agent", "call back"));
}

TEST_P(SshTreeTest, AHostThatCannotHelpIsDoneWithout) {
  via_["two"] = "away";
  Begin("two");
  Begin("away");
  StepsUntil("two", "waits for host away");
  StepsUntil("away", "(attempt 2)");
  starter_->Kill("away");
  Lines("two", 2);
  EXPECT_THAT(Relays(), ElementsAre());
}

TEST_P(SshTreeTest, AWayThatFailsTwiceIsLeft) {
  via_["two"] = "one";
  relay_answer_ = [] { return absl::UnavailableError("by way of host one: no route to host"); };
  Begin("one");
  Begin("two");
  const std::vector<std::string> steps = StepsUntil("two", "call back");
  EXPECT_THAT(steps, Contains(HasSubstr("no route to host (attempt 2)")));
  EXPECT_THAT(steps, ::testing::Not(Contains(HasSubstr("(attempt 3)"))));
  EXPECT_EQ(Relays().size(), 2u);
}

TEST_P(SshTreeTest, WhatIsFoundThroughAnotherHostIsNoVerdict) {
  via_["two"] = "one";
  relay_answer_ = [] { return absl::PermissionDeniedError("that is not two"); };
  Begin("one");
  Begin("two");
  EXPECT_THAT(StepsUntil("two", "call back"), Contains(HasSubstr("by way of host one: that is not two (attempt 1)")));
  EXPECT_EQ(Relays().size(), 1u);
}

TEST_P(SshTreeTest, WaitingEndsWithKill) {
  via_["two"] = "one";
  Begin("two");
  StepsUntil("two", "waits for host one");
  starter_->Kill("two");
  EXPECT_THAT(Failure("two"), StatusIs(absl::StatusCode::kCancelled, HasSubstr("given up at the step \"connect\"")));
  via_["three"] = "one";
  Begin("one");
  Begin("three");
  ASSERT_TRUE(AwaitRelays(1));
  starter_->Kill("three");
  EXPECT_THAT(Failure("three"), StatusIs(absl::StatusCode::kCancelled));
  unanswered_(AnyStream());  // too late, and no harm
}

INSTANTIATE_TEST_SUITE_P(All, SshTreeTest, ::testing::Values("fake"), [](const auto& info) { return info.param; });

TEST(SshStarter, WhatCannotBeCuredFailsAtOnce) {
  const auto connector = ::farandole::testing::MakeFakeConnector({"/bin/sh", EnvironmentWith({}, {})});
  Mutex mutex;
  CondVar changed;
  absl::Status failure;
  {
    SshStarterOptions options;
    options.connector = connector.get();
    options.target = [](const std::string& host) { return RemoteTarget{host}; };
    options.agent_program = "/bin/true";
    ASSERT_OK_AND_ASSIGN(const auto starter, SshStarter::Create(std::move(options)));
    AgentStart start;
    start.host = "unknown";
    starter->Start(start, {[](HostStep, const std::string&) {},
                           [&](const absl::Status& status) {
                             MutexLock lock(&mutex);
                             failure = status;
                             changed.NotifyAll();
                           }});
    MutexLock lock(&mutex);
    EXPECT_TRUE(changed.AwaitUntil(&mutex, Now() + kLongEnough, [&] { return !failure.ok(); }));
  }
  EXPECT_THAT(failure, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("its host key is not known")));
}

TEST(SshStarter, WithoutAnAgentsProgramThereIsNone) {
  SshStarterOptions options;
  options.agent_program = "/nowhere/agent";
  EXPECT_THAT(SshStarter::Create(std::move(options)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/agent")));
}

TEST(CallBackAddresses, AreWhatTheHostSawIfItIsOurs) {
  EXPECT_THAT(CallBackAddresses("127.0.0.1", "127.0.0.1"), ElementsAre("127.0.0.1"));
  EXPECT_THAT(CallBackAddresses("192.0.2.77", "127.0.0.2"), ElementsAre("127.0.0.1"));
  EXPECT_EQ(CallBackAddresses("", ""), OwnAddresses(true));
}

}  // namespace
}  // namespace farandole
