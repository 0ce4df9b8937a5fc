#include "launcher/ssh/openssh_connector.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/ssh/await.h"
#include "launcher/ssh/child_process.h"
#include "launcher/ssh/ssh_errors.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr size_t kLogBytes = 64 << 10;

// A folder for one control socket, which goes with it. Not in TMPDIR: the name of a socket may not be long.
class SocketFolder {
 public:
  static absl::StatusOr<SocketFolder> Create() {
    char path[] = "/tmp/farandole-ssh-XXXXXX";
    if (::mkdtemp(path) == nullptr) return ErrnoStatus(errno, "make a folder in /tmp for ssh's control socket");
    return SocketFolder(path);
  }
  SocketFolder(SocketFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  SocketFolder& operator=(SocketFolder&&) = delete;
  ~SocketFolder() {
    if (path_.empty()) return;
    ::unlink(socket().c_str());
    ::rmdir(path_.c_str());
  }

  const std::string& path() const { return path_; }
  std::string socket() const { return path_ + "/s"; }

 private:
  explicit SocketFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

ChildOptions Ssh(std::vector<std::string> arguments) {
  ChildOptions options;
  options.arguments = {"ssh"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.environment =
      EnvironmentWith({"SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "LC_ALL"}, {"SSH_ASKPASS_REQUIRE=never", "LC_ALL=C"});
  return options;
}

std::vector<std::string> MasterArguments(const RemoteTarget& target, const SshFiles& files, const std::string& socket) {
  std::vector<std::string> arguments = {"-N", "-M", "-S", socket};
  const auto option = [&](const std::string& text) { arguments.insert(arguments.end(), {"-o", text}); };
  option("BatchMode=yes");
  option("ControlPersist=no");
  option("LogLevel=DEBUG1");
  option(absl::StrCat("StrictHostKeyChecking=", target.accept_new_host_keys ? "accept-new" : "yes"));
  option("ServerAliveInterval=15");
  option("ServerAliveCountMax=4");
  option("ClearAllForwardings=yes");
  option("PermitLocalCommand=no");
  option("RemoteCommand=none");
  option("RequestTTY=no");
  option("ForkAfterAuthentication=no");
  if (!files.known_hosts.empty()) {
    option(absl::StrCat("UserKnownHostsFile=", files.known_hosts));
    option("GlobalKnownHostsFile=/dev/null");
  }
  if (!files.config.empty()) arguments.insert(arguments.end(), {"-F", files.config});
  if (target.port != 0) arguments.insert(arguments.end(), {"-p", std::to_string(target.port)});
  if (!target.identity_file.empty()) arguments.insert(arguments.end(), {"-i", target.identity_file});
  if (!target.user.empty()) arguments.insert(arguments.end(), {"-l", target.user});
  arguments.insert(arguments.end(), {"--", target.host});
  return arguments;
}

std::vector<std::string> LockedKeys(absl::string_view log) {
  std::vector<std::string> locked;
  for (const std::string& key : KeysInOpensshLog(log)) {
    std::ifstream file(key);
    char text[4096];
    file.read(text, sizeof text);
    if (NeedsPassphrase({text, static_cast<size_t>(file.gcount())})) locked.push_back(key);
  }
  return locked;
}

// The `ssh` that holds the connection. It is connected and authenticated when its control socket has its name.
class Master {
 public:
  Master(SocketFolder folder, SshEndpoint where, const Cancellation& cancellation)
      : folder_(std::move(folder)), where_(std::move(where)), cancellation_(cancellation) {}

  absl::Status Run(const ChildOptions& options, Instant deadline, const std::function<void(HostStep)>& on_step) {
    const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!watch || ::inotify_add_watch(watch.get(), folder_.path().c_str(), IN_CREATE) < 0) {
      return ErrnoStatus(errno, "inotify for ssh's control socket");
    }
    ASSIGN_OR_RETURN(child_, ChildProcess::Start(options), std::move(_) << "--ssh-backend=openssh");
    on_step(HostStep::kResolve);
    while (::access(socket().c_str(), F_OK) != 0) {
      pollfd ready[] = {{watch.get(), POLLIN, 0}, {child_->error().get(), POLLIN, 0}};
      const absl::Status waited = AwaitAny(absl::MakeSpan(ready), deadline, cancellation_);
      if (!waited.ok())
        return absl::Status(waited.code(), absl::StrCat("ssh to ", where_.text(), ": ", waited.message()));
      char events[4096];
      while (::read(watch.get(), events, sizeof events) > 0) {
      }
      if (ready[1].revents != 0 && !ReadLog(on_step)) return FromOpensshLog(where_, log_, LockedKeys(log_));
    }
    return absl::OkStatus();
  }

  std::string socket() const { return folder_.socket(); }
  const SshEndpoint& where() const { return where_; }

  // Why a process could not be started, or Unavailable when the connection is no more.
  absl::Status Explain(absl::string_view log_of_process) {
    ReadLog([](HostStep) {});
    pollfd ended{child_->ended_fd(), POLLIN, 0};
    if (::poll(&ended, 1, 0) > 0) {
      return absl::UnavailableError(FromOpensshLog(where_, log_, {}).message());
    }
    return absl::FailedPreconditionError(
        absl::StrCat("ssh to ", where_.text(), ": no process can be started there: ", Quoted(log_of_process)));
  }

 private:
  // False when ssh has ended. What the log tells of the way is passed on.
  bool ReadLog(const std::function<void(HostStep)>& on_step) {
    char text[4096];
    ssize_t size = 0;
    while ((size = ::read(child_->error().get(), text, sizeof text)) > 0) {
      log_.append(text, static_cast<size_t>(size));
      if (log_.size() > kLogBytes) log_.erase(0, log_.size() - kLogBytes);
      if (step_ == HostStep::kResolve && absl::StrContains(log_, "debug1: Connecting to "))
        Reach(HostStep::kConnect, on_step);
      if (step_ == HostStep::kConnect && absl::StrContains(log_, "debug1: Connection established")) {
        Reach(HostStep::kAuthenticate, on_step);
      }
    }
    return size < 0 && (errno == EAGAIN || errno == EINTR);
  }

  void Reach(HostStep step, const std::function<void(HostStep)>& on_step) {
    step_ = step;
    on_step(step);
  }

  const SocketFolder folder_;
  const SshEndpoint where_;
  const Cancellation& cancellation_;
  std::unique_ptr<ChildProcess> child_;
  std::string log_;
  HostStep step_ = HostStep::kResolve;
};

class OpensshShell : public RemoteShell {
 public:
  OpensshShell(std::unique_ptr<Master> master, std::vector<std::string> arguments, const Cancellation& cancellation)
      : master_(std::move(master)), arguments_(std::move(arguments)), cancellation_(cancellation) {}

  absl::StatusOr<std::unique_ptr<RemoteProcess>> Exec(const std::string& command, Instant deadline) override {
    if (::access(master_->socket().c_str(), F_OK) != 0) return master_->Explain("");
    std::vector<std::string> arguments = arguments_;
    arguments.push_back(command);
    ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child, ChildProcess::Start(Ssh(std::move(arguments))));
    return MakeChildRemoteProcess(std::move(child), cancellation_);
  }

 private:
  const std::unique_ptr<Master> master_;
  const std::vector<std::string> arguments_;
  const Cancellation& cancellation_;
};

// Through the master or not at all: were it gone, the proxy that ends at once keeps ssh from connecting anew.
std::vector<std::string> ProcessArguments(const RemoteTarget& target, const SshFiles& files,
                                          const std::string& socket) {
  std::vector<std::string> arguments = {"-T",
                                        "-S",
                                        socket,
                                        "-o",
                                        "ControlMaster=no",
                                        "-o",
                                        "BatchMode=yes",
                                        "-o",
                                        "ProxyCommand=exec false",
                                        "-o",
                                        "ProxyJump=none",
                                        "-o",
                                        "LogLevel=ERROR",
                                        "-o",
                                        "PermitLocalCommand=no",
                                        "-o",
                                        "RemoteCommand=none"};
  if (!files.config.empty()) arguments.insert(arguments.end(), {"-F", files.config});
  arguments.insert(arguments.end(), {"--", target.host});
  return arguments;
}

class OpensshConnector : public RemoteConnector {
 public:
  explicit OpensshConnector(SshFiles files) : files_(std::move(files)) {}

  absl::StatusOr<std::unique_ptr<RemoteShell>> Connect(const RemoteTarget& target, Instant deadline,
                                                       const Cancellation& cancellation,
                                                       const std::function<void(HostStep)>& on_step) override {
    if (target.connect) {
      return absl::UnimplementedError(
          "--ssh-backend=openssh cannot use a connection that is relayed by another host; "
          "libssh can");
    }
    ASSIGN_OR_RETURN(SocketFolder folder, SocketFolder::Create());
    const std::string socket = folder.socket();
    const SshEndpoint where{target.user, target.host, target.port == 0 ? 22 : target.port};
    auto master = std::make_unique<Master>(std::move(folder), where, cancellation);
    RETURN_IF_ERROR(master->Run(Ssh(MasterArguments(target, files_, socket)), deadline, on_step));
    return std::make_unique<OpensshShell>(std::move(master), ProcessArguments(target, files_, socket), cancellation);
  }

 private:
  const SshFiles files_;
};

}  // namespace

std::unique_ptr<RemoteConnector> MakeOpensshConnector(SshFiles files) {
  return std::make_unique<OpensshConnector>(std::move(files));
}

}  // namespace farandole
