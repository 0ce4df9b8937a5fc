#include "launcher/ssh/testing/ssh_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/ssh/await.h"
#include "launcher/ssh/child_process.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole::testing {
namespace {

constexpr char kSshd[] = "/usr/sbin/sshd";
constexpr absl::Duration kPatience = absl::Seconds(20);

absl::Status RunTool(std::vector<std::string> arguments) {
  const std::string name = arguments[0];
  const Cancellation never;
  ChildOptions options;
  options.arguments = std::move(arguments);
  options.environment = EnvironmentWith({}, {});
  ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child, ChildProcess::Start(options));
  ASSIGN_OR_RETURN(const ExitStatus status, child->AwaitEnd(Now() + kPatience, never));
  if (!status.success()) return absl::InternalError(absl::StrCat(name, " failed"));
  return absl::OkStatus();
}

int FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

class SshServerImpl : public SshServer {
 public:
  ~SshServerImpl() override {
    sshd_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  absl::Status Init(const SshServerOptions& options) {
    char path[] = "/tmp/farandole-sshd-XXXXXX";
    if (::mkdtemp(path) == nullptr) return ErrnoStatus(errno, "mkdtemp");
    folder_ = path;
    user_ = ::getpwuid(::geteuid())->pw_name;
    for (const char* name : {"host_key", "user_key"}) {
      RETURN_IF_ERROR(RunTool({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", absl::StrCat(folder_, "/", name)}));
    }
    std::filesystem::copy_file(folder_ + "/user_key.pub", folder_ + "/authorized_keys");
    WriteWhole(folder_ + "/ssh_config", "");
    if (::geteuid() == 0) ::mkdir("/run/sshd", 0755);  // sshd asks for it
    absl::Status status;
    for (int attempt = 0; attempt < 5; ++attempt) {  // another process may take the port first
      port_ = FreePort();
      status = StartOnPort(options);
      if (status.ok()) break;
    }
    RETURN_IF_ERROR(status);
    WriteWhole(folder_ + "/known_hosts",
               absl::StrCat("[127.0.0.1]:", port_, " ", ReadWhole(folder_ + "/host_key.pub")));
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  const std::string& folder() const override { return folder_; }
  SshFiles files() const override { return {folder_ + "/ssh_config", folder_ + "/known_hosts"}; }

  RemoteTarget target() const override {
    RemoteTarget target;
    target.host = "127.0.0.1";
    target.user = user_;
    target.port = port_;
    target.identity_file = folder_ + "/user_key";
    return target;
  }

  std::string MakeKey(const std::string& name, const std::string& passphrase) override {
    const std::string path = absl::StrCat(folder_, "/", name);
    const absl::Status status = RunTool({"ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", path});
    return status.ok() ? path : "";
  }

 private:
  absl::Status StartOnPort(const SshServerOptions& options) {
    std::vector<std::string> lines = {absl::StrCat("Port ", port_),
                                      "ListenAddress 127.0.0.1",
                                      absl::StrCat("HostKey ", folder_, "/host_key"),
                                      absl::StrCat("AuthorizedKeysFile ", folder_, "/authorized_keys"),
                                      absl::StrCat("PidFile ", folder_, "/pid"),
                                      "StrictModes no",
                                      "UsePAM no",
                                      "PasswordAuthentication no",
                                      "KbdInteractiveAuthentication no",
                                      "PermitRootLogin yes",
                                      "PrintMotd no",
                                      "MaxStartups 100"};
    if (!options.environment.empty()) lines.push_back("SetEnv " + absl::StrJoin(options.environment, " "));
    lines.insert(lines.end(), options.extra_config.begin(), options.extra_config.end());
    WriteWhole(folder_ + "/sshd_config", absl::StrJoin(lines, "\n") + "\n");
    ChildOptions child;
    child.arguments = {kSshd, "-D", "-e", "-f", folder_ + "/sshd_config"};
    child.environment = EnvironmentWith({}, {});
    ASSIGN_OR_RETURN(sshd_, ChildProcess::Start(child));
    return AwaitListening();
  }

  absl::Status AwaitListening() {
    const Cancellation never;
    std::string log;
    while (!absl::StrContains(log, "Server listening")) {
      RETURN_IF_ERROR(AwaitFd(sshd_->error().get(), POLLIN, Now() + kPatience, never));
      char text[4096];
      const ssize_t size = ::read(sshd_->error().get(), text, sizeof text);
      if (size <= 0) return absl::UnavailableError(absl::StrCat("sshd ended: ", log));
      log.append(text, static_cast<size_t>(size));
    }
    return absl::OkStatus();
  }

  std::string folder_, user_;
  int port_ = 0;
  std::unique_ptr<ChildProcess> sshd_;
};

}  // namespace

std::string SshServer::Missing() {
  if (::access(kSshd, X_OK) != 0) return "there is no /usr/sbin/sshd: install openssh-server";
  return "";
}

absl::StatusOr<std::unique_ptr<SshServer>> SshServer::Start(const SshServerOptions& options) {
  auto server = std::make_unique<SshServerImpl>();
  RETURN_IF_ERROR(server->Init(options));
  return server;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteWhole(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace farandole::testing
