#include "collectives/transport/tcp/handshake_io.h"

#include <poll.h>
#include <sys/uio.h>

#include "absl/types/span.h"
#include "collectives/transport/tcp/socket.h"
#include "tools/base/status_macros.h"

namespace farandole {

HandshakeIo::HandshakeIo(UniqueFd fd, Handshake handshake)
    : fd_(std::move(fd)), handshake_(std::move(handshake)), output_(handshake_.TakeOutput()) {}

absl::StatusOr<short> HandshakeIo::Advance() {
  while (true) {
    if (!output_.empty()) {
      const iovec piece{output_.data(), output_.size()};
      ASSIGN_OR_RETURN(const size_t sent, SendSome(fd_.get(), absl::MakeConstSpan(&piece, 1)));
      if (sent == 0) return POLLOUT;
      output_.erase(0, sent);
      continue;
    }
    const size_t wanted = handshake_.wanted();
    if (wanted == 0) return 0;
    // Never more than this message: what follows belongs to the link.
    const size_t had = input_.size();
    input_.resize(wanted);
    const iovec piece{input_.data() + had, wanted - had};
    const absl::StatusOr<size_t> received = ReceiveSome(fd_.get(), absl::MakeConstSpan(&piece, 1));
    input_.resize(had + received.value_or(0));
    RETURN_IF_ERROR(received.status());
    if (*received == 0) return POLLIN;
    if (input_.size() < wanted) continue;
    RETURN_IF_ERROR(handshake_.Receive(input_));
    input_.clear();
    output_ = handshake_.TakeOutput();
    const bool last_word = handshake_.wanted() == 0 && !output_.empty();
    if (last_word) {
      RETURN_IF_ERROR(CheckNotEnded(fd_.get()));
    }
  }
}

}  // namespace farandole
