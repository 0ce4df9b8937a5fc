#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "collectives/transport/tcp/handshake.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// A Handshake over a non-blocking socket, as far as it gets each time. At the connecting side it includes the wait for
// the connection itself. At the listening side a peer that closed the connection after its claim gets no proof: it has
// given up here and gone on at another address, so this must not become its link.
class HandshakeIo {
 public:
  HandshakeIo(UniqueFd fd, Handshake handshake);

  // Goes on without blocking. Returns what to poll fd() for before the next call, 0 when the handshake has succeeded.
  // Errors: those of Handshake, and kUnavailable when the connection has ended.
  absl::StatusOr<short> Advance();

  int fd() const { return fd_.get(); }
  bool claimed() const { return handshake_.claimed(); }
  const LinkClaim& claim() const { return handshake_.claim(); }
  UniqueFd TakeFd() { return std::move(fd_); }

 private:
  UniqueFd fd_;
  Handshake handshake_;
  std::string output_;
  std::string input_;  // of the next message, so far
};

}  // namespace farandole
