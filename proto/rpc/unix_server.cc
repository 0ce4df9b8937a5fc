#include "proto/rpc/unix_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/server_posix.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/log.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/base/unix_socket.h"

namespace farandole {
namespace {

constexpr absl::string_view kScheme = "unix-abstract:";

// An assignment of thousands of workers and a start with a full environment fit; gRPC's own 4 MiB is less than execve
// takes.
constexpr int kMaxMessageBytes = 16 << 20;

// How long connecting may take: only a listener that is stopped with a full backlog comes near it.
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

// When the process has no descriptor left for a waiting connection: look again after this long.
constexpr int kAcceptRetryMs = 100;

gpr_timespec ToGrpc(Instant deadline) {
  if (deadline.is_infinite()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_from_nanos(deadline.nanos(), GPR_CLOCK_MONOTONIC);
}

class UnixServerImpl final : public UnixServer {
 public:
  UnixServerImpl(AbstractListener listener, UniqueFd wake, PeerCheck let_in, std::unique_ptr<grpc::Server> server)
      : listener_(std::move(listener)),
        wake_(std::move(wake)),
        let_in_(std::move(let_in)),
        server_(std::move(server)),
        acceptor_([this] { Accept(); }) {}

  ~UnixServerImpl() override { Shutdown(Now()); }

  std::string address() const override { return absl::StrCat(kScheme, listener_.name); }
  int64_t refused() const override { return refused_; }

  void Shutdown(Instant deadline) override {
    if (acceptor_.joinable()) {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
      acceptor_.join();
      listener_.fd.reset();
    }
    server_->Shutdown(ToGrpc(deadline));
  }

 private:
  void Accept() {
    pollfd waiting[] = {{listener_.fd.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    while (true) {
      ::poll(waiting, 2, -1);
      if (waiting[1].revents != 0) return;
      UniqueFd peer(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (peer) {
        Admit(std::move(peer));
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        LOG(WARNING) << "a connection waits: " << ErrnoStatus(errno, "accept").message();
        ::poll(&waiting[1], 1, kAcceptRetryMs);
      }
    }
  }

  void Admit(UniqueFd peer) {
    const absl::StatusOr<uid_t> user = PeerUser(peer.get());
    if (user.ok() && let_in_(*user)) {
      grpc::AddInsecureChannelFromFd(server_.get(), ReleaseToLibrary(std::move(peer)));
      return;
    }
    ++refused_;
    LOG(WARNING) << "refused a connection to " << listener_.name << ": it is "
                 << (user.ok() ? absl::StrCat("of user ", *user) : std::string(user.status().message()));
  }

  AbstractListener listener_;
  const UniqueFd wake_;
  const PeerCheck let_in_;
  const std::unique_ptr<grpc::Server> server_;
  std::atomic<int64_t> refused_ = 0;
  std::thread acceptor_;  // last: it uses all others
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnixServer>> UnixServer::Start(std::vector<grpc::Service*> services) {
  return Start(std::move(services), IsThisUserOrRoot);
}

absl::StatusOr<std::unique_ptr<UnixServer>> UnixServer::Start(std::vector<grpc::Service*> services, PeerCheck let_in) {
  absl::StatusOr<AbstractListener> listener = ListenAbstract(SOCK_STREAM);
  if (!listener.ok()) return absl::UnavailableError(listener.status().message());
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake) return absl::UnavailableError(ErrnoStatus(errno, "eventfd").message());
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("gRPC could not start a server");
  return std::make_unique<UnixServerImpl>(*std::move(listener), std::move(wake), std::move(let_in), std::move(server));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectUnix(const std::string& address) {
  absl::string_view name = address;
  if (!absl::ConsumePrefix(&name, kScheme)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", address, "\" is no address of the form ", kScheme, "NAME"));
  }
  ASSIGN_OR_RETURN(UniqueFd socket, ConnectAbstract(SOCK_STREAM, std::string(name), Now() + kConnectTimeout));
  RETURN_IF_ERROR(CheckPeer(socket.get())) << address;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return grpc::CreateCustomInsecureChannelFromFd(address, ReleaseToLibrary(std::move(socket)), arguments);
}

}  // namespace farandole
