// What people meet when ssh does not work, with a real sshd: each has its own words, a code that says whether waiting
// can help, and comes without a question to anybody.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/ssh/await.h"
#include "launcher/ssh/cancellation.h"
#include "launcher/ssh/libssh_connector.h"
#include "launcher/ssh/openssh_connector.h"
#include "launcher/ssh/remote_shell.h"
#include "launcher/ssh/testing/ssh_server.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::farandole::testing::ReadWhole;
using ::farandole::testing::SshServer;
using ::farandole::testing::StatusIs;
using ::farandole::testing::WriteWhole;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

Instant Soon() { return Now() + absl::Seconds(60); }

// A port of this machine that nobody listens on, for as long as this lives.
class ClosedPort {
 public:
  ClosedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }
  int Accept() { return ::accept(fd_.get(), nullptr, nullptr); }
  void Listen() { EXPECT_EQ(::listen(fd_.get(), 8), 0); }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

class SshFailuresTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    if (!SshServer::Missing().empty()) GTEST_SKIP() << SshServer::Missing();
    ASSERT_OK_AND_ASSIGN(server_, SshServer::Start({}));
    target_ = server_->target();
    files_ = server_->files();
  }

  absl::Status Connect(Instant deadline = Soon()) {
    const auto connector = GetParam() == "libssh" ? MakeLibsshConnector(files_) : MakeOpensshConnector(files_);
    const auto shell = connector->Connect(target_, deadline, cancellation_, [this](HostStep step) { step_ = step; });
    if (!shell.ok()) return shell.status();
    const auto process = (*shell)->Exec("echo in", deadline);
    if (!process.ok()) return process.status();
    const auto output = (*process)->Read(deadline);
    return !output.ok()              ? output.status()
           : output->bytes == "in\n" ? absl::OkStatus()
                                     : absl::InternalError(output->bytes);
  }

  std::string Where() const { return absl::StrCat(target_.user, "@127.0.0.1 port ", target_.port); }

  std::unique_ptr<SshServer> server_;
  RemoteTarget target_;
  SshFiles files_;
  Cancellation cancellation_;
  HostStep step_ = HostStep::kWorkers;
};

TEST_P(SshFailuresTest, AnUnknownHostKeyIsRefusedAndNothingIsAdded) {
  WriteWhole(files_.known_hosts, "");
  EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  AllOf(HasSubstr(Where()), HasSubstr("is not known"), HasSubstr("SHA256:"),
                                        HasSubstr(absl::StrCat("ssh-keyscan -p ", target_.port, " 127.0.0.1 >> ")),
                                        HasSubstr("--ssh-accept-new-host-keys"))));
  EXPECT_EQ(ReadWhole(files_.known_hosts), "");
}

TEST_P(SshFailuresTest, AnUnknownHostKeyIsTakenAndKeptWhenThatWasAskedFor) {
  WriteWhole(files_.known_hosts, "");
  target_.accept_new_host_keys = true;
  EXPECT_OK(Connect());
  EXPECT_THAT(ReadWhole(files_.known_hosts), HasSubstr("ssh-ed25519"));
  target_.accept_new_host_keys = false;
  EXPECT_OK(Connect());
}

TEST_P(SshFailuresTest, AChangedHostKeyIsRefusedWhateverWasAskedFor) {
  const std::string other = server_->MakeKey("other_host", "");
  WriteWhole(files_.known_hosts, absl::StrCat("[127.0.0.1]:", target_.port, " ", ReadWhole(other + ".pub")));
  WriteWhole(files_.config, "StrictHostKeyChecking no\n");
  target_.accept_new_host_keys = true;
  EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  AllOf(HasSubstr(Where()), HasSubstr("is not the one in"), HasSubstr("ssh-keygen -f "),
                                        HasSubstr(absl::StrCat("-R '[127.0.0.1]:", target_.port, "'")))));
}

TEST_P(SshFailuresTest, AKeyThatIsNotTakenIsNamedWithWhatTheHostTakes) {
  target_.identity_file = server_->MakeKey("stranger", "");
  const Instant start = Now();
  EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kPermissionDenied,
                                  AllOf(HasSubstr(Where()), HasSubstr("the host takes: publickey"),
                                        HasSubstr(target_.identity_file), HasSubstr("ssh-copy-id -p "))));
  EXPECT_LT(Now() - start, absl::Seconds(5));
  EXPECT_EQ(step_, HostStep::kAuthenticate);
}

TEST_P(SshFailuresTest, AKeyThatNeedsAPassphraseIsNamedAsSuch) {
  target_.identity_file = server_->MakeKey("locked", "secret");
  for (const bool with_public_half : {true, false}) {
    if (!with_public_half) std::filesystem::remove(target_.identity_file + ".pub");
    EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kPermissionDenied,
                                    AllOf(HasSubstr("the key " + target_.identity_file + " needs a passphrase"),
                                          HasSubstr("`ssh-add " + target_.identity_file + "`"))));
  }
}

TEST_P(SshFailuresTest, NobodyIsAskedOnATerminal) {
  target_.identity_file = server_->MakeKey("locked", "secret");
  int master = -1;
  const pid_t child = ::forkpty(&master, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(absl::IsPermissionDenied(Connect(Now() + absl::Seconds(30))) ? 0 : 1);
  std::string shown;
  char text[4096];
  for (ssize_t size = 0; (size = ::read(master, text, sizeof text)) > 0;) shown.append(text, static_cast<size_t>(size));
  int status = -1;
  ::waitpid(child, &status, 0);
  ::close(master);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(shown, "");
}

TEST_P(SshFailuresTest, AClosedPortMayOpenLater) {
  const ClosedPort closed;
  target_.port = closed.port();
  EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr(absl::StrCat("port ", target_.port)),
                                                                        HasSubstr("Connection refused"))));
  EXPECT_EQ(step_, HostStep::kConnect);
}

TEST_P(SshFailuresTest, ANameThatIsNotKnownMayComeLater) {
  target_.host = "no-such-host.invalid";
  EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no-such-host.invalid")));
  EXPECT_EQ(step_, HostStep::kResolve);
}

TEST_P(SshFailuresTest, AHostThatTakesTheConnectionAndIsSilentEndsAtTheDeadline) {
  ClosedPort silent;
  silent.Listen();
  target_.port = silent.port();
  EXPECT_THAT(Connect(Now() + absl::Milliseconds(300)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("127.0.0.1 port ")));
}

TEST_P(SshFailuresTest, ConnectingIsCancelledFromAnotherThread) {
  ClosedPort silent;
  silent.Listen();
  target_.port = silent.port();
  std::thread other([this] { cancellation_.Cancel(); });
  EXPECT_THAT(Connect(), StatusIs(absl::StatusCode::kCancelled));
  other.join();
}

TEST_P(SshFailuresTest, WhatTheConfigurationSaysCounts) {
  WriteWhole(files_.config, absl::StrCat("Host gpu7\n  HostName 127.0.0.1\n  Port ", target_.port, "\n  User ",
                                         target_.user, "\n  IdentityFile ", target_.identity_file, "\n"));
  target_ = RemoteTarget();
  target_.host = "gpu7";
  EXPECT_OK(Connect());
}

TEST_P(SshFailuresTest, TheCommandLineGoesOverTheConfiguration) {
  WriteWhole(files_.config, "Host *\n  Port 1\n  User nobody-at-all\n");
  EXPECT_OK(Connect());
}

TEST_P(SshFailuresTest, AProxyCommandIsRunAndEndsWithTheConnection) {
  WriteWhole(files_.config, absl::StrCat("ProxyCommand bash -c \"exec 3<>/dev/tcp/%h/%p; echo $$ > ", server_->folder(),
                                         "/proxy; cat <&3 & exec cat >&3\"\n"));
  EXPECT_OK(Connect());
  const int proxy = std::atoi(ReadWhole(server_->folder() + "/proxy").c_str());
  ASSERT_GT(proxy, 1);
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, proxy, 0)));  // none: it is gone altogether
  if (process) {
    EXPECT_OK(AwaitFd(process.get(), POLLIN, Soon(), cancellation_));
  }
}

TEST_P(SshFailuresTest, ACertificateLetsIn) {
  const std::string authority = server_->MakeKey("authority", "");
  const std::string user = server_->MakeKey("certified", "");
  ASSERT_EQ(std::system(
                absl::StrCat("ssh-keygen -q -s ", authority, " -I test -n ", target_.user, " ", user, ".pub").c_str()),
            0);
  WriteWhole(server_->folder() + "/authorized_keys", "cert-authority " + ReadWhole(authority + ".pub"));
  target_.identity_file = user;
  EXPECT_OK(Connect());
}

TEST_P(SshFailuresTest, AnotherProtocolBehindThePortIsToldAtOnce) {
  ClosedPort web;
  web.Listen();
  target_.port = web.port();
  std::thread server([&web] {
    const UniqueFd peer(web.Accept());
    const std::string answer(400, 'x');
    for (int i = 0; i < 3; ++i) {
      [[maybe_unused]] const ssize_t sent = ::send(peer.get(), (answer + "\r\n").data(), 402, MSG_NOSIGNAL);
    }
    [[maybe_unused]] const ssize_t sent = ::send(peer.get(), "\0\r\n", 3, MSG_NOSIGNAL);
    char ignored[1024];
    while (::read(peer.get(), ignored, sizeof ignored) > 0) {
    }
  });
  const absl::Status status = Connect();
  server.join();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(IsRetryable(status)) << status;
}

INSTANTIATE_TEST_SUITE_P(All, SshFailuresTest, ::testing::Values("libssh", "openssh"),
                         [](const auto& info) { return info.param; });

TEST(Libssh, ConnectsAsItIsToldToTheAddressesOfItsHost) {
  if (!SshServer::Missing().empty()) GTEST_SKIP() << SshServer::Missing();
  ASSERT_OK_AND_ASSIGN(const auto server, SshServer::Start({}));
  RemoteTarget target = server->target();
  std::string asked_for;
  target.connect = [&](const std::string& host, int port, Instant) -> absl::StatusOr<UniqueFd> {
    absl::StrAppend(&asked_for, host, " ", port, "\n");
    UniqueFd stream(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(stream.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return stream;
  };
  const Cancellation cancellation;
  const auto connector = MakeLibsshConnector(server->files());
  ASSERT_OK_AND_ASSIGN(const auto shell, connector->Connect(target, Soon(), cancellation, [](HostStep) {}));
  ASSERT_OK_AND_ASSIGN(const auto process, shell->Exec("echo in", Soon()));
  ASSERT_OK_AND_ASSIGN(const RemoteOutput output, process->Read(Soon()));
  EXPECT_EQ(output.bytes, "in\n");
  EXPECT_EQ(asked_for, absl::StrCat("127.0.0.1 ", target.port, "\n"));
}

TEST(Libssh, SaysWhyItCouldNotConnectAsItWasTold) {
  RemoteTarget target;
  target.host = "127.0.0.1";
  absl::Status answer;
  target.connect = [&](const std::string&, int, Instant) -> absl::StatusOr<UniqueFd> { return answer; };
  const Cancellation cancellation;
  const auto connector = MakeLibsshConnector({"/dev/null", "/dev/null"});
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kNotFound, absl::StatusCode::kCancelled}) {
    answer = absl::Status(code, "by way of gpu8: no");
    EXPECT_THAT(connector->Connect(target, Soon(), cancellation, [](HostStep) {}),
                StatusIs(code, HasSubstr("by way of gpu8: no")));
  }
}

TEST(Libssh, AProxyOfTheConfigurationIsNotGoneAround) {
  char path[] = "/tmp/farandole-config-XXXXXX";
  const UniqueFd file(::mkstemp(path));
  WriteWhole(path, "ProxyCommand exit 1\n");
  RemoteTarget target;
  target.host = "gpu7";
  bool asked = false;
  target.connect = [&](const std::string&, int, Instant) -> absl::StatusOr<UniqueFd> {
    asked = true;
    return absl::UnavailableError("no");
  };
  const Cancellation cancellation;
  const auto connector = MakeLibsshConnector({path, "/dev/null"});
  EXPECT_THAT(connector->Connect(target, Soon(), cancellation, [](HostStep) {}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(asked);
  ::unlink(path);
}

TEST(Openssh, DoesNotConnectAsItIsTold) {
  RemoteTarget target;
  target.host = "gpu7";
  target.connect = [](const std::string&, int, Instant) -> absl::StatusOr<UniqueFd> {
    return absl::InternalError("asked");
  };
  const Cancellation cancellation;
  EXPECT_THAT(MakeOpensshConnector({})->Connect(target, Soon(), cancellation, [](HostStep) {}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("libssh can")));
}

}  // namespace
}  // namespace farandole
