// The agent's way to a host: under every shell that is installed here, and over a real sshd.

#include "launcher/exec/agent_push.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/ssh/cancellation.h"
#include "launcher/ssh/libssh_connector.h"
#include "launcher/ssh/testing/fake_connector.h"
#include "launcher/ssh/testing/ssh_server.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::ReadWhole;
using ::farandole::testing::StatusIs;
using ::farandole::testing::WriteWhole;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kAgentText[] =
    "#!/bin/sh\n"
    "if [ \"$1\" = --version ]; then exit 0; fi\n"
    "echo agent \"$@\"; read line; echo got \"$line\"; exit 5\n";

Instant Soon() { return Now() + absl::Seconds(60); }

// A host with a home of its own, and the agent.
class AgentPushTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    char path[] = "/tmp/farandole-push-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
    for (const char* name : {"home", "tmp", "bin"}) std::filesystem::create_directory(absl::StrCat(folder_, "/", name));
    WriteWhole(folder_ + "/agent", kAgentText);
    ASSERT_OK_AND_ASSIGN(program_, AgentProgram::Load(folder_ + "/agent"));
    environment_ = {absl::StrCat("HOME=", folder_, "/home"), absl::StrCat("TMPDIR=", folder_, "/tmp"),
                    "PATH=/usr/bin:/bin", "SSH_CONNECTION=10.0.0.1 4000 10.0.0.2 22"};
    Use("/bin/sh");
  }
  void TearDown() override {
    shell_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void Use(const std::string& login_shell) {
    shell_.reset();
    connector_ = ::farandole::testing::MakeFakeConnector({login_shell, environment_});
    ASSERT_OK_AND_ASSIGN(shell_, connector_->Connect({"here"}, Soon(), cancellation_, [](HostStep) {}));
  }

  absl::StatusOr<RemoteAgent> Start() {
    return StartRemoteAgent(*shell_, *program_, Soon(), [this](absl::string_view note) { notes_.emplace_back(note); });
  }

  // What the agent says when it is spoken to.
  std::string Talk(RemoteAgent& agent) {
    EXPECT_OK(agent.process->Write("hello\n", Soon()));
    std::string said = agent.stdout_so_far;
    while (true) {
      const absl::StatusOr<RemoteOutput> output = agent.process->Read(Soon());
      EXPECT_OK(output);
      if (!output.ok() || output->kind == RemoteOutput::Kind::kEnd) return said;
      said += output->bytes;
    }
  }

  void ExpectStarts() {
    absl::StatusOr<RemoteAgent> agent = Start();
    ASSERT_OK(agent);
    EXPECT_EQ(Talk(*agent), "agent --guard\ngot hello\n");
  }

  std::string Stored() const { return absl::StrCat(folder_, "/home/.cache/farandole/agent-", program_->hash()); }
  std::string StoredInTmp() const {
    return absl::StrCat(folder_, "/tmp/farandole-", ::geteuid(), "/agent-", program_->hash());
  }

  std::string folder_;
  std::unique_ptr<AgentProgram> program_;
  std::vector<std::string> environment_;
  Cancellation cancellation_;
  std::unique_ptr<RemoteConnector> connector_;
  std::unique_ptr<RemoteShell> shell_;
  std::vector<std::string> notes_;
};

TEST_F(AgentPushTest, IsBroughtOnceAndFoundFromThenOn) {
  ASSERT_OK_AND_ASSIGN(RemoteAgent agent, Start());
  EXPECT_EQ(Talk(agent), "agent --guard\ngot hello\n");
  EXPECT_GT(agent.pid, 1);
  EXPECT_EQ(agent.our_address, "10.0.0.1");
  EXPECT_EQ(agent.its_address, "10.0.0.2");
  EXPECT_EQ(ReadWhole(Stored()), kAgentText);
  struct stat status;
  ASSERT_EQ(::stat(Stored().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("brought the agent there")));
  notes_.clear();
  ExpectStarts();
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(AgentPushTest, AnyLoginShellWillDo) {
  for (const std::string shell :
       {"/bin/sh", "/bin/bash", "/bin/dash", "/usr/bin/zsh", "/usr/bin/tcsh", "/usr/bin/fish"}) {
    if (::access(shell.c_str(), X_OK) != 0) continue;
    SCOPED_TRACE(shell);
    std::filesystem::remove_all(folder_ + "/home/.cache");
    Use(shell);
    ExpectStarts();
    EXPECT_TRUE(std::filesystem::exists(Stored()));
  }
}

TEST_F(AgentPushTest, NoiseOfRcFilesIsSkipped) {
  WriteWhole(folder_ + "/noisy", "#!/bin/sh\necho welcome; printf 'no end'; echo oops >&2; exec /bin/sh \"$@\"\n");
  ::chmod((folder_ + "/noisy").c_str(), 0700);
  Use(folder_ + "/noisy");
  ExpectStarts();
}

TEST_F(AgentPushTest, ALoginShellThatLetsNobodyInIsToldWithItsWords) {
  WriteWhole(folder_ + "/nologin", "#!/bin/sh\necho This account is currently not available.; exit 1\n");
  ::chmod((folder_ + "/nologin").c_str(), 0700);
  Use(folder_ + "/nologin");
  EXPECT_THAT(Start(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("exit code 1"), HasSubstr("This account is currently not available."))));
}

TEST_F(AgentPushTest, AHomeThatCannotBeWrittenSendsItToTheTemporaryFolder) {
  environment_[0] = "HOME=/proc/nowhere";
  Use("/bin/sh");
  ExpectStarts();
  EXPECT_TRUE(std::filesystem::exists(StoredInTmp()));
}

TEST_F(AgentPushTest, AFolderWhereNothingCanBeExecutedIsLeftForTheNext) {
  // mv of the first folder's file is not reached: the trial fails there, and only there.
  const std::string agent = absl::StrCat("#!/bin/sh\ncase $0 in *home*) exit 126;; esac\n", kAgentText + 10);
  WriteWhole(folder_ + "/agent", agent);
  ASSERT_OK_AND_ASSIGN(program_, AgentProgram::Load(folder_ + "/agent"));
  ExpectStarts();
  EXPECT_FALSE(std::filesystem::exists(Stored()));
  EXPECT_TRUE(std::filesystem::exists(StoredInTmp()));
  EXPECT_THAT(std::vector<std::string>(1, ReadWhole(StoredInTmp())), ElementsAre(agent));
}

TEST_F(AgentPushTest, AProgramThatRunsNowhereIsToldWithEveryFolder) {
  WriteWhole(folder_ + "/agent", "#!/bin/sh\nexit 126\n");
  ASSERT_OK_AND_ASSIGN(program_, AgentProgram::Load(folder_ + "/agent"));
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("no folder there takes the agent's program"),
                                      HasSubstr(folder_ + "/home/.cache/farandole: programs cannot be executed there"),
                                      HasSubstr(folder_ + "/tmp/farandole-"))));
}

TEST_F(AgentPushTest, WithoutGzipItGoesUnpacked) {
  for (const char* tool : {"sh", "id", "touch", "uname", "mkdir", "chmod", "wc", "mv", "rm", "find", "cat"}) {
    const std::string from = absl::StrCat("/bin/", tool);
    std::filesystem::create_symlink(::access(from.c_str(), X_OK) == 0 ? from : absl::StrCat("/usr/bin/", tool),
                                    absl::StrCat(folder_, "/bin/", tool));
  }
  environment_[2] = absl::StrCat("PATH=", folder_, "/bin");
  Use("/bin/sh");
  ExpectStarts();
  EXPECT_EQ(ReadWhole(Stored()), kAgentText);
}

TEST_F(AgentPushTest, ALinkInItsPlaceIsNotFollowed) {
  std::filesystem::create_directories(folder_ + "/elsewhere");
  std::filesystem::create_directories(folder_ + "/home/.cache");
  std::filesystem::create_directory_symlink(folder_ + "/elsewhere", folder_ + "/home/.cache/farandole");
  ExpectStarts();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/elsewhere"));
  EXPECT_TRUE(std::filesystem::exists(StoredInTmp()));
}

TEST_F(AgentPushTest, OldProgramsThatNobodyUsedGo) {
  std::filesystem::create_directories(folder_ + "/home/.cache/farandole");
  const std::string old = folder_ + "/home/.cache/farandole/agent-0ld",
                    recent = folder_ + "/home/.cache/farandole/agent-1";
  WriteWhole(old, "");
  WriteWhole(recent, "");
  const timespec times[] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
  ExpectStarts();
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(recent));
}

TEST_F(AgentPushTest, ManyJobsAtOnceDoNotDisturbEachOther) {
  std::vector<std::thread> jobs;
  for (int i = 0; i < 6; ++i) {
    jobs.emplace_back([this] {
      const Cancellation cancellation;
      const auto shell = connector_->Connect({"here"}, Soon(), cancellation, [](HostStep) {});
      ASSERT_OK(shell);
      absl::StatusOr<RemoteAgent> agent = StartRemoteAgent(**shell, *program_, Soon(), [](absl::string_view) {});
      ASSERT_OK(agent);
      EXPECT_EQ(Talk(*agent), "agent --guard\ngot hello\n");
    });
  }
  for (std::thread& job : jobs) job.join();
  EXPECT_EQ(ReadWhole(Stored()), kAgentText);
}

TEST_F(AgentPushTest, IsKilledByItsNumberAndNothingElseIs) {
  ASSERT_OK_AND_ASSIGN(RemoteAgent agent, Start());
  EXPECT_OK(KillRemoteAgent(*shell_, *program_, ::getpid(), Soon()));  // us: no agent, so nothing happens
  EXPECT_OK(KillRemoteAgent(*shell_, *program_, agent.pid, Soon()));
  RemoteOutput output;
  do {
    ASSERT_OK_AND_ASSIGN(output, agent.process->Read(Soon()));
  } while (output.kind != RemoteOutput::Kind::kEnd);
  EXPECT_EQ(output.signal, "USR1") << "which a guardian would answer";
}

TEST_F(AgentPushTest, OverARealConnectionColdAndWarm) {
  if (!::farandole::testing::SshServer::Missing().empty()) GTEST_SKIP() << ::farandole::testing::SshServer::Missing();
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ::farandole::testing::SshServer::Start({{environment_[0], environment_[1]}, {}}));
  const auto connector = MakeLibsshConnector(server->files());
  ASSERT_OK_AND_ASSIGN(shell_, connector->Connect(server->target(), Soon(), cancellation_, [](HostStep) {}));
  for (const bool warm : {false, true}) {
    EXPECT_EQ(std::filesystem::exists(Stored()), warm);
    ASSERT_OK_AND_ASSIGN(RemoteAgent agent, Start());
    EXPECT_EQ(Talk(agent), "agent --guard\ngot hello\n");
    EXPECT_EQ(agent.our_address, "127.0.0.1");
  }
  shell_.reset();
}

}  // namespace
}  // namespace farandole
