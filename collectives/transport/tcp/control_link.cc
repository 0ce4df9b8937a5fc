#include "collectives/transport/tcp/control_link.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "collectives/transport/tcp/socket.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// The buffer of a message grows with what has come, not with what a header promises.
constexpr size_t kReadBytes = 1 << 20;

// Bytes (and the end mark) that the peer's machine has not confirmed yet.
int Unconfirmed(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

// Reading on keeps the system from resetting the connection for unread bytes, which would lose what was sent.
void Discard(int fd) {
  char waste[4096];
  while (::recv(fd, waste, sizeof waste, MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

// It goes on by itself, before the first message, or the listener takes us for a stranger.
void ControlLink::Start(Dial dial, std::function<UniqueFd(Dial&)> take) {
  dial_ = std::move(dial);
  take_ = std::move(take);
}

void ControlLink::Start(UniqueFd fd) { fd_ = std::move(fd); }

void ControlLink::Queue(std::string message) {
  if (ended_ || output_ended_) return;
  output_.push_back(EncodeControlHeader({static_cast<uint32_t>(message.size())}));
  output_.back() += message;
}

absl::Status ControlLink::Flush() {
  if (dial_.has_value()) {
    RETURN_IF_ERROR(AdvanceDial());
  }
  while (connected() && !output_.empty()) {
    std::string& first = output_.front();
    const iovec piece{first.data() + output_sent_, first.size() - output_sent_};
    const absl::StatusOr<size_t> sent = SendSome(fd_.get(), absl::MakeConstSpan(&piece, 1));
    if (!sent.ok()) {
      output_ended_ = true;
      output_.clear();
      break;
    }
    if (*sent == 0) break;
    output_sent_ += *sent;
    if (output_sent_ == first.size()) {
      output_.pop_front();
      output_sent_ = 0;
    }
  }
  return absl::OkStatus();
}

absl::Status ControlLink::AdvanceDial() {
  ASSIGN_OR_RETURN(const bool proven, dial_->Advance());
  if (!proven) return absl::OkStatus();
  fd_ = take_(*dial_);
  dial_.reset();
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<std::string>> ControlLink::Receive() {
  if (!connected()) return absl::nullopt;
  if (header_.size() < kControlHeaderBytes) {
    RETURN_IF_ERROR(ReceiveInto(header_, kControlHeaderBytes));
    if (header_.size() < kControlHeaderBytes) return absl::nullopt;
    const auto header = DecodeControlHeader(header_);
    if (!header.has_value()) return absl::InvalidArgumentError("it sent what is no control message");
    message_length_ = header->length;
  }
  RETURN_IF_ERROR(ReceiveInto(message_, message_length_));
  if (message_.size() < message_length_) return absl::nullopt;
  header_.clear();
  return std::exchange(message_, std::string());
}

// As much as there is now.
absl::Status ControlLink::ReceiveInto(std::string& buffer, size_t length) {
  while (buffer.size() < length) {
    const size_t had = buffer.size();
    buffer.resize(std::min(length, had + kReadBytes));
    const iovec piece{buffer.data() + had, buffer.size() - had};
    const absl::StatusOr<size_t> received = ReceiveSome(fd_.get(), absl::MakeConstSpan(&piece, 1));
    buffer.resize(had + received.value_or(0));
    RETURN_IF_ERROR(received.status());
    if (*received == 0) break;
  }
  return absl::OkStatus();
}

int ControlLink::fd() const { return dial_.has_value() ? dial_->fd() : fd_.get(); }

short ControlLink::events() const {
  if (dial_.has_value()) return POLLIN;
  return output_.empty() ? POLLIN : POLLIN | POLLOUT;
}

bool ControlLink::Close(bool force) {
  if (connected()) {
    if (!shut_down_) ::shutdown(fd_.get(), SHUT_WR);
    shut_down_ = true;
    Discard(fd_.get());
    if (!force && !output_ended_ && Unconfirmed(fd_.get()) > 0) return false;
  }
  End();
  return true;
}

void ControlLink::End() {
  dial_.reset();
  if (fd_) ::shutdown(fd_.get(), SHUT_RDWR);
  fd_.reset();
  output_.clear();
  ended_ = true;
}

}  // namespace farandole
