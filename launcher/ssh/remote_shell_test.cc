// What every way to another host must do alike.

#include "launcher/ssh/remote_shell.h"

#include <signal.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/ssh/child_process.h"
#include "launcher/ssh/libssh_connector.h"
#include "launcher/ssh/openssh_connector.h"
#include "launcher/ssh/testing/fake_connector.h"
#include "launcher/ssh/testing/ssh_server.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::SshServer;
using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;

Instant Soon() { return Now() + absl::Seconds(60); }

struct Heard {
  std::string output, error;
  RemoteOutput end;
};

absl::StatusOr<Heard> ReadToEnd(RemoteProcess& process) {
  Heard heard;
  while (true) {
    ASSIGN_OR_RETURN(RemoteOutput output, process.Read(Soon()));
    if (output.kind == RemoteOutput::Kind::kEnd) {
      heard.end = std::move(output);
      return heard;
    }
    (output.kind == RemoteOutput::Kind::kStdout ? heard.output : heard.error) += output.bytes;
  }
}

class RemoteShellTest : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    ::signal(SIGPIPE, SIG_IGN);
    if (!SshServer::Missing().empty()) return;
    auto server = SshServer::Start({});
    ASSERT_OK(server);
    server_ = std::move(*server).release();
  }
  static void TearDownTestSuite() { delete server_; }

  void SetUp() override {
    if (GetParam() == "fake") {
      connector_ = ::farandole::testing::MakeFakeConnector({"/bin/sh", EnvironmentWith({}, {})});
      target_.host = "here";
    } else {
      if (server_ == nullptr) GTEST_SKIP() << SshServer::Missing();
      target_ = server_->target();
      connector_ =
          GetParam() == "libssh" ? MakeLibsshConnector(server_->files()) : MakeOpensshConnector(server_->files());
    }
    ASSERT_OK_AND_ASSIGN(
        shell_, connector_->Connect(target_, Soon(), cancellation_, [this](HostStep step) { steps_.push_back(step); }));
  }

  std::unique_ptr<RemoteProcess> Exec(const std::string& command) {
    auto process = shell_->Exec(command, Soon());
    EXPECT_OK(process);
    return process.ok() ? *std::move(process) : nullptr;
  }

  Heard Run(const std::string& command) {
    const std::unique_ptr<RemoteProcess> process = Exec(command);
    if (process == nullptr) return {};
    absl::StatusOr<Heard> heard = ReadToEnd(*process);
    EXPECT_OK(heard);
    return heard.ok() ? *std::move(heard) : Heard();
  }

  static SshServer* server_;
  Cancellation cancellation_;
  RemoteTarget target_;
  std::vector<HostStep> steps_;
  std::unique_ptr<RemoteConnector> connector_;
  std::unique_ptr<RemoteShell> shell_;
};

SshServer* RemoteShellTest::server_ = nullptr;

TEST_P(RemoteShellTest, TheStepsAreToldInOrder) {
  EXPECT_THAT(steps_, ElementsAre(HostStep::kResolve, HostStep::kConnect, HostStep::kAuthenticate));
}

TEST_P(RemoteShellTest, BothStreamsAndTheExitCodeArrive) {
  const Heard heard = Run("echo out; echo error >&2; exit 7");
  EXPECT_EQ(heard.output, "out\n");
  EXPECT_EQ(heard.error, "error\n");
  EXPECT_EQ(heard.end.exit_code, 7);
  EXPECT_EQ(heard.end.signal, "");
}

TEST_P(RemoteShellTest, AnEndBySignalIsNoSuccess) {
  const Heard heard = Run("kill -KILL $$");
  if (GetParam() == "openssh") {
    EXPECT_EQ(heard.end.exit_code, 255);
  } else {
    EXPECT_EQ(heard.end.signal, "KILL");
  }
}

TEST_P(RemoteShellTest, ACommandThatIsNotThereIsExitCode127) { EXPECT_EQ(Run("/nowhere/program").end.exit_code, 127); }

TEST_P(RemoteShellTest, InputComesThroughUnchangedAndItsEndIsSeen) {
  const std::unique_ptr<RemoteProcess> process = Exec("cat");
  const std::string bytes("a\0b\r\n\xff~.\n", 9);
  ASSERT_OK(process->Write(bytes, Soon()));
  process->CloseInput();
  ASSERT_OK_AND_ASSIGN(const Heard heard, ReadToEnd(*process));
  EXPECT_EQ(heard.output, bytes);
  EXPECT_EQ(heard.end.exit_code, 0);
}

TEST_P(RemoteShellTest, EightMegabytesInAndOut) {
  std::string bytes;
  while (bytes.size() < 8 << 20) absl::StrAppend(&bytes, bytes.size(), ",");
  const std::unique_ptr<RemoteProcess> in = Exec("wc -c");
  ASSERT_OK(in->Write(bytes, Soon()));
  in->CloseInput();
  ASSERT_OK_AND_ASSIGN(const Heard counted, ReadToEnd(*in));
  EXPECT_EQ(std::stoul(counted.output), bytes.size());
  EXPECT_EQ(Run("head -c 8388608 /dev/zero").output, std::string(8 << 20, '\0'));
}

TEST_P(RemoteShellTest, TwoProcessesOnOneConnection) {
  const std::unique_ptr<RemoteProcess> waits = Exec("read line; echo got $line");
  EXPECT_EQ(Run("echo other").output, "other\n");
  ASSERT_OK(waits->Write("it\n", Soon()));
  ASSERT_OK_AND_ASSIGN(const Heard heard, ReadToEnd(*waits));
  EXPECT_EQ(heard.output, "got it\n");
}

TEST_P(RemoteShellTest, ReadingEndsAtTheDeadline) {
  const std::unique_ptr<RemoteProcess> process = Exec("exec sleep 600");
  EXPECT_THAT(process->Read(Now() + absl::Milliseconds(20)), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(RemoteShellTest, AnotherThreadCancelsAndAfterClearingItGoesOn) {
  const std::unique_ptr<RemoteProcess> process = Exec("cat");
  std::thread other([this] { cancellation_.Cancel(); });
  EXPECT_THAT(process->Read(Soon()), StatusIs(absl::StatusCode::kCancelled));
  other.join();
  cancellation_.Clear();
  ASSERT_OK(process->Write("on", Soon()));
  process->CloseInput();
  ASSERT_OK_AND_ASSIGN(const Heard heard, ReadToEnd(*process));
  EXPECT_EQ(heard.output, "on");
}

TEST_P(RemoteShellTest, AProcessThatIsDestroyedSeesTheEndOfItsInput) {
  // The second process ends when the first has: by a fifo that both know.
  const std::string fifo = absl::StrCat("/tmp/farandole-fifo-", ::getpid(), "-", GetParam());
  ASSERT_EQ(Run(absl::StrCat("mkfifo ", fifo)).end.exit_code, 0);
  std::unique_ptr<RemoteProcess> process = Exec(absl::StrCat("echo up; cat >/dev/null; echo gone > ", fifo));
  ASSERT_OK(process->Read(Soon()));
  const std::unique_ptr<RemoteProcess> watcher = Exec(absl::StrCat("cat ", fifo));
  process->CloseInput();
  process.reset();
  if (GetParam() != "fake") {
    ASSERT_OK_AND_ASSIGN(const Heard heard, ReadToEnd(*watcher));
    EXPECT_EQ(heard.output, "gone\n");
  }
  ::unlink(fifo.c_str());
}

TEST_P(RemoteShellTest, WritingToAProcessThatReadsNoMoreFails) {
  const std::unique_ptr<RemoteProcess> process = Exec("exec <&-; echo closed; exit 3");
  ASSERT_OK_AND_ASSIGN(const Heard heard, ReadToEnd(*process));
  EXPECT_EQ(heard.end.exit_code, 3);
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = process->Write(std::string(64 << 10, 'x'), Soon());
  EXPECT_FALSE(status.ok());
}

INSTANTIATE_TEST_SUITE_P(All, RemoteShellTest, ::testing::Values("libssh", "openssh", "fake"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace farandole
