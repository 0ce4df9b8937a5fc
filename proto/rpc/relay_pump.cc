#include "proto/rpc/relay_pump.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/time/time.h"
#include "tools/base/clock.h"

namespace farandole {
namespace {

constexpr absl::Duration kLinger = absl::Seconds(2);

bool IsToComeAgain(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

RelayPump::RelayPump(EventLoop* loop, UniqueFd socket, Call call)
    : loop_(loop), socket_(std::move(socket)), call_(std::move(call)) {}

RelayPump::~RelayPump() {
  loop_->Unwatch(socket_.get());
  loop_->Cancel(lingering_);
}

void RelayPump::Begin() {
  Rewatch();
  call_.read();
}

// With nothing to wait for, not even for the other end to go: that would be told again and again.
void RelayPump::Rewatch() {
  const uint32_t events = (reading_ ? EPOLLIN : 0U) | (unwritten_.empty() ? 0U : EPOLLOUT);
  if (events == 0 && (!read_ended_ || abandoned_)) return loop_->Unwatch(socket_.get());
  loop_->Watch(socket_.get(), events, [this](uint32_t ready) { OnSocket(ready); });
}

void RelayPump::OnSocket(uint32_t events) {
  if (reading_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    if (!ReadSome()) return Over(false);
  } else if (read_ended_ && (events & (EPOLLHUP | EPOLLERR)) != 0 && !std::exchange(abandoned_, true)) {
    lingering_ = loop_->At(Now() + kLinger, [this] { Over(false); });
  }
  if (!unwritten_.empty() && !WriteSome()) return Over(false);
  if (write_ended_ && end_written_) return Over(true);
  Rewatch();
}

// False: the socket has failed.
bool RelayPump::ReadSome() {
  std::string bytes(kLongestPiece, '\0');
  const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0) return IsToComeAgain(errno);
  bytes.resize(static_cast<size_t>(size));
  reading_ = false;
  read_ended_ = size == 0;
  call_.write(std::move(bytes), read_ended_);
  return true;
}

void RelayPump::Written() {
  if (read_ended_) {
    end_written_ = true;
    if (write_ended_) Over(true);
    return;
  }
  reading_ = true;
  Rewatch();
}

void RelayPump::Received(std::string bytes, bool end) {
  unwritten_ = std::move(bytes);
  call_ended_ = end;
  if (!WriteSome()) return Over(false);
  if (write_ended_ && end_written_) return Over(true);
  Rewatch();
}

// Goes on to the next piece when this one is out. False: the socket has failed.
bool RelayPump::WriteSome() {
  while (!unwritten_.empty()) {
    const ssize_t size = ::send(socket_.get(), unwritten_.data(), unwritten_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0) return IsToComeAgain(errno);
    unwritten_.erase(0, static_cast<size_t>(size));
  }
  if (!call_ended_) {
    call_.read();
  } else {
    write_ended_ = true;
    ::shutdown(socket_.get(), SHUT_WR);
  }
  return true;
}

void RelayPump::Over(bool whole) {
  loop_->Unwatch(socket_.get());
  loop_->Cancel(std::exchange(lingering_, 0));
  const std::function<void(bool)> over = call_.over;  // it may end this object
  over(whole);
}

}  // namespace farandole
