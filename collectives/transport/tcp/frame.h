#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "collectives/transport/tcp/socket.h"
#include "collectives/transport/tcp/wire.h"

namespace farandole {

// What goes through one stream at a time: a header, and the stripe of a message behind it. Header and bytes take one
// system call together.

// What is given to the system at a time, so that the receiving side gets its turn.
inline constexpr size_t kSendBytesMax = 1 << 20;

// On its way out, as far as it is gone. Stays where it is made; `bytes` are borrowed.
class SendingFrame {
 public:
  SendingFrame(const DataHeader& header, absl::Span<const std::byte> bytes)
      : header_(EncodeDataHeader(header)),
        pieces_{iovec{header_.data(), header_.size()}, iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}},
        left_(absl::MakeSpan(pieces_)) {}
  SendingFrame(const SendingFrame&) = delete;
  SendingFrame& operator=(const SendingFrame&) = delete;

  bool done() const { return left_.empty(); }

  // Whether anything moved.
  absl::StatusOr<bool> Advance(int fd) {
    std::array<iovec, 2> now;
    std::copy(left_.begin(), left_.end(), now.begin());
    iovec& last = now[left_.size() - 1];
    last.iov_len = std::min(last.iov_len, kSendBytesMax);
    const absl::StatusOr<size_t> sent = SendSome(fd, absl::MakeConstSpan(now.data(), left_.size()));
    if (!sent.ok()) return sent.status();
    farandole::Advance(left_, *sent);
    return *sent > 0;
  }

 private:
  std::string header_;
  std::array<iovec, 2> pieces_;
  absl::Span<iovec> left_;
};

// On its way in: never more than this frame is read, because its length was agreed before it came. Stays where it is
// made; `bytes` are borrowed.
class ReceivingFrame {
 public:
  explicit ReceivingFrame(absl::Span<std::byte> bytes)
      : pieces_{iovec{header_.data(), header_.size()}, iovec{bytes.data(), bytes.size()}},
        left_(absl::MakeSpan(pieces_)) {}
  ReceivingFrame(const ReceivingFrame&) = delete;
  ReceivingFrame& operator=(const ReceivingFrame&) = delete;

  bool done() const { return left_.empty(); }

  // Whether anything moved.
  absl::StatusOr<bool> Advance(int fd) {
    const absl::StatusOr<size_t> received = ReceiveSome(fd, left_);
    if (!received.ok()) return received.status();
    farandole::Advance(left_, *received);
    return *received > 0;
  }

  // The header, the first time it is complete.
  absl::optional<absl::string_view> TakeHeader() {
    if (header_taken_ || left_.size() == pieces_.size()) return absl::nullopt;
    header_taken_ = true;
    return absl::string_view(header_.data(), header_.size());
  }

 private:
  std::array<char, kDataHeaderBytes> header_;
  std::array<iovec, 2> pieces_;
  absl::Span<iovec> left_;
  bool header_taken_ = false;
};

}  // namespace farandole
