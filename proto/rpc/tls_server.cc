#include "proto/rpc/tls_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/generic/async_generic_service.h"
#include "proto/rpc/grpc_log.h"
#include "proto/rpc/tcp_listener.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/event_loop.h"
#include "tools/base/log.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

// A proven peer may send what an agent sends: output in pieces of 64 KiB, and little else.
constexpr int kMaxMessageBytes = 4 << 20;
constexpr int kMaxMetadataBytes = 16 << 10;
constexpr int kMaxStreams = 16;

constexpr absl::Duration kAcceptRetry = absl::Milliseconds(100);

std::chrono::system_clock::time_point ToGrpc(Instant deadline) {
  if (deadline.is_infinite()) return std::chrono::system_clock::time_point::max();
  return std::chrono::system_clock::now() + absl::ToChronoNanoseconds(deadline - Now());
}

// Takes all calls that no service has.
class ProofService final : public grpc::CallbackGenericService {
 public:
  // Set before the first connection.
  std::function<void(const std::string& peer)> proved;

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    proved(context->peer());
    return new Answer;
  }

 private:
  class Answer final : public grpc::ServerGenericBidiReactor {
   public:
    Answer() { Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "there is no such method here")); }
    void OnDone() override { delete this; }
  };
};

class TlsServerImpl final : public TlsServer {
 public:
  TlsServerImpl(TlsServerOptions options, std::unique_ptr<ProofService> proof, std::unique_ptr<Acceptor> acceptor,
                std::unique_ptr<grpc::Server> server)
      : options_(std::move(options)),
        proof_(std::move(proof)),
        acceptor_(std::move(acceptor)),
        server_(std::move(server)) {
    proof_->proved = [this](const std::string& peer) { Proved(peer); };
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~TlsServerImpl() override { Shutdown(Now()); }

  absl::StatusOr<std::string> Listen(const std::string& address) override {
    MutexLock lock(&mutex_);
    if (shut_down_) return absl::UnavailableError("the server is ending");
    for (const auto& [known, listener] : listeners_) {
      if (known == address) return listener.endpoint;
    }
    ASSIGN_OR_RETURN(TcpListener listener, ListenTcp(address, options_.first_port, options_.last_port));
    const int fd = listener.fd.get();
    const std::string endpoint = listener.endpoint;
    listeners_.emplace_back(address, std::move(listener));
    loop_.Post([this, fd] { WatchListener(fd); });
    return endpoint;
  }

  std::vector<std::string> listening() const override {
    MutexLock lock(&mutex_);
    std::vector<std::string> all;
    for (const auto& [address, listener] : listeners_) all.push_back(listener.endpoint);
    return all;
  }

  TlsServerStats stats() const override {
    MutexLock lock(&mutex_);
    return stats_;
  }

  void Shutdown(Instant deadline) override {
    if (!thread_.joinable()) return;
    {
      MutexLock lock(&mutex_);
      shut_down_ = true;
    }
    loop_.Stop();
    thread_.join();
    {
      MutexLock lock(&mutex_);
      listeners_.clear();
      for (const auto& [key, connection] : unproven_) ::shutdown(connection.fd.get(), SHUT_RDWR);
      unproven_.clear();
    }
    server_->Shutdown(ToGrpc(deadline));
  }

 private:
  struct Unproven {
    UniqueFd fd;          // a second descriptor of gRPC's socket, to close the connection by and to see its end
    std::string address;  // of the peer, without its port
    uint64_t number = 0;  // the older, the lower
    EventLoop::TimerId timer = 0;
    bool proved = false;  // and about to be forgotten
  };

  void Proved(const std::string& peer) {
    MutexLock lock(&mutex_);
    const auto it = unproven_.find(PeerKey(peer));
    if (it == unproven_.end() || std::exchange(it->second.proved, true)) return;
    ++stats_.proved;
    loop_.Post([this, key = it->first, number = it->second.number] { Forget(key, number, nullptr); });
  }

  void WatchListener(int fd) {
    loop_.Watch(fd, EPOLLIN, [this, fd](uint32_t) { Accept(fd); });
  }

  void Accept(int listener) {
    while (true) {
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      UniqueFd fd(::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd) {
        Admit(std::move(fd), PeerKey(peer));
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        LOG(WARNING) << "a connection waits: " << ErrnoStatus(errno, "accept").message();
        loop_.Unwatch(listener);
        loop_.At(Now() + kAcceptRetry, [this, listener] { WatchListener(listener); });
        return;
      } else if (errno != ECONNABORTED && errno != EINTR) {
        return;
      }
    }
  }

  void Admit(UniqueFd fd, const std::string& key) {
    const int one = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    UniqueFd second(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!Note(UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)), key)) return;
    Acceptor::NewConnectionParameters parameters;
    parameters.fd = ReleaseToLibrary(std::move(fd));
    acceptor_->HandleNewConnection(&parameters);
  }

  // Begins to look after a connection by `fd`. False: it cannot be.
  bool Note(UniqueFd fd, const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++stats_.accepted;
    if (!fd || key.empty() || unproven_.count(key) != 0) {
      ++stats_.refused;
      return false;
    }
    if (static_cast<int>(unproven_.size()) >= options_.max_unproven) EvictOne();
    const uint64_t number = ++accepted_;
    loop_.Watch(fd.get(), EPOLLRDHUP, [this, key, number](uint32_t) { Forget(key, number, &TlsServerStats::refused); });
    const EventLoop::TimerId timer =
        loop_.At(Now() + options_.prove_within, [this, key, number] { Forget(key, number, &TlsServerStats::expired); });
    unproven_[key] = Unproven{std::move(fd), key.substr(0, key.find(' ')), number, timer, false};
    return true;
  }

  // Closes the oldest connection of the address that has the most.
  void EvictOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::map<std::string, int> of_address;
    int most = 0;
    for (const auto& [key, connection] : unproven_) most = std::max(most, ++of_address[connection.address]);
    auto oldest = unproven_.end();
    for (auto it = unproven_.begin(); it != unproven_.end(); ++it) {
      if (of_address[it->second.address] != most) continue;
      if (oldest == unproven_.end() || it->second.number < oldest->second.number) oldest = it;
    }
    Remove(oldest, &TlsServerStats::evicted);
  }

  void Forget(const std::string& key, uint64_t number, int64_t TlsServerStats::*counter) {
    MutexLock lock(&mutex_);
    const auto it = unproven_.find(key);
    if (it != unproven_.end() && it->second.number == number) Remove(it, counter);
  }

  // Stops to look after a connection, and closes it unless it has proved itself.
  void Remove(std::map<std::string, Unproven>::iterator it, int64_t TlsServerStats::*counter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Unproven& connection = it->second;
    loop_.Unwatch(connection.fd.get());
    loop_.Cancel(connection.timer);
    if (!connection.proved) {
      ::shutdown(connection.fd.get(), SHUT_RDWR);
      ++(stats_.*counter);
    }
    unproven_.erase(it);
  }

  const TlsServerOptions options_;
  const std::unique_ptr<ProofService> proof_;
  const std::unique_ptr<Acceptor> acceptor_;
  const std::unique_ptr<grpc::Server> server_;
  EventLoop loop_;
  uint64_t accepted_ = 0;  // of the loop

  mutable Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::pair<std::string, TcpListener>> listeners_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Unproven> unproven_ ABSL_GUARDED_BY(mutex_);  // by PeerKey; changed on the loop only
  TlsServerStats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: it uses all others
};

}  // namespace

absl::StatusOr<std::unique_ptr<TlsServer>> TlsServer::Start(const std::vector<grpc::Service*>& services,
                                                            TlsServerOptions options) {
  if (options.identity.ca_pem.empty() || options.identity.certificate_pem.empty() ||
      options.identity.private_key_pem.empty()) {
    return absl::InvalidArgumentError("the server's identity is not complete");
  }
  QuietGrpc();
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = options.identity.ca_pem;
  tls.pem_key_cert_pairs.push_back({options.identity.private_key_pem, options.identity.certificate_pem});
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(options.prove_within)));
  using ExternalConnectionType = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  std::unique_ptr<Acceptor> acceptor = builder.experimental().AddExternalConnectionAcceptor(
      ExternalConnectionType::FROM_FD, grpc::SslServerCredentials(tls));
  for (grpc::Service* service : services) builder.RegisterService(service);
  auto proof = std::make_unique<ProofService>();
  builder.RegisterCallbackGenericService(proof.get());
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("gRPC could not start a server with TLS");
  return std::make_unique<TlsServerImpl>(std::move(options), std::move(proof), std::move(acceptor), std::move(server));
}

}  // namespace farandole
