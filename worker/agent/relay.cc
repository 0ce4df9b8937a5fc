#include "worker/agent/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"

namespace farandole {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

// 0: it is connected, or being connected; otherwise errno.
int BeginConnect(const OpenRelay& wanted, UniqueFd* socket) {
  sockaddr_storage storage{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  socklen_t size = sizeof *v4;
  if (::inet_pton(AF_INET, wanted.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(wanted.port));
  } else if (::inet_pton(AF_INET6, wanted.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(wanted.port));
    size = sizeof *v6;
  } else {
    return EAFNOSUPPORT;
  }
  socket->reset(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!*socket) return errno;
  if (::connect(socket->get(), reinterpret_cast<const sockaddr*>(&storage), size) == 0) return 0;
  return errno == EINPROGRESS ? 0 : errno;
}

// A host that is gone without a word is noticed in about a minute.
void KeepAlive(int fd) {
  const int on = 1, idle_s = 30, interval_s = 10, probes = 3;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

// The loop has ended or has heard OnDone: no operation is begun any more.
AgentRelay::~AgentRelay() {
  if (socket_) loop_->Unwatch(socket_.get());
  loop_->Cancel(timer_);
  pump_ = nullptr;
  context_.TryCancel();
  if (std::exchange(holding_, false)) RemoveHold();
  MutexLock lock(&mutex_);
  changed_.Await(&mutex_, [this] {
    mutex_.AssertHeld();
    return !calling_;
  });
}

void AgentRelay::Connect(const OpenRelay& wanted) {
  wanted_ = wanted;
  if (const int error = BeginConnect(wanted, &socket_); error != 0) {
    return Call(std::string(ErrnoStatus(error, "connecting").message()));
  }
  timer_ = loop_->At(Now() + kConnectTimeout, [this] {
    loop_->Unwatch(socket_.get());
    socket_.reset();
    Call(absl::StrCat("no answer within ", absl::FormatDuration(kConnectTimeout)));
  });
  loop_->Watch(socket_.get(), EPOLLOUT, [this](uint32_t) { OnConnected(); });
}

void AgentRelay::Refuse(const OpenRelay& wanted, const std::string& why) {
  wanted_ = wanted;
  Call(why);
}

void AgentRelay::OnConnected() {
  loop_->Unwatch(socket_.get());
  loop_->Cancel(timer_);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) {
    KeepAlive(socket_.get());
    return Call("");
  }
  socket_.reset();
  Call(std::string(ErrnoStatus(error, "connecting").message()));
}

// Tells the driver how it went.
void AgentRelay::Call(const std::string& error) {
  {
    MutexLock lock(&mutex_);
    calling_ = true;
  }
  refused_ = !error.empty();
  greeting_ = true;
  holding_ = true;
  stub_->async()->Relay(&context_, this);
  AddHold();
  out_.set_relay(wanted_.relay);
  out_.set_error(error);
  StartWrite(&out_);
  StartCall();
}

void AgentRelay::BeginPump() {
  RelayPump::Call call;
  call.write = [this](std::string bytes, bool end) {
    out_.Clear();
    out_.set_data(std::move(bytes));
    out_.set_end(end);
    StartWrite(&out_);
  };
  call.read = [this] { StartRead(&in_); };
  call.over = [this](bool whole) { End(whole); };
  pump_ = std::make_unique<RelayPump>(loop_, std::move(socket_), std::move(call));
  pump_->Begin();
}

void AgentRelay::End(bool whole) {
  pump_ = nullptr;
  if (!std::exchange(holding_, false)) return;
  if (whole) {
    StartWritesDone();
  } else {
    context_.TryCancel();
  }
  RemoveHold();
}

void AgentRelay::OnReadDone(bool ok) {
  loop_->Post([this, ok] {
    if (pump_ == nullptr) return;
    if (!ok || in_.relay() != 0 || !in_.error().empty() || in_.data().size() > RelayPump::kLongestPiece) {
      return End(false);
    }
    v1::RelayBytes bytes;
    bytes.Swap(&in_);
    pump_->Received(std::move(*bytes.mutable_data()), bytes.end());
  });
}

void AgentRelay::OnWriteDone(bool ok) {
  loop_->Post([this, ok] {
    if (!ok) return End(false);
    if (std::exchange(greeting_, false)) return refused_ ? End(true) : BeginPump();
    if (pump_ != nullptr) pump_->Written();
  });
}

void AgentRelay::OnDone(const grpc::Status&) {
  loop_->Post([this] {
    const std::function<void()> ended = ended_;  // it ends this object
    ended();
  });
  MutexLock lock(&mutex_);
  calling_ = false;
  changed_.NotifyAll();
}

}  // namespace farandole
