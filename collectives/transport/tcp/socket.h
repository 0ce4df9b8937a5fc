#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// The few things that this package wants from TCP sockets. All sockets are non-blocking and close on exec.

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// "10.0.0.7:4711", "[fe80::1%eth0]:4711": numeric; names are resolved elsewhere. kInvalidArgument otherwise.
absl::StatusOr<SocketAddress> ParseEndpoint(absl::string_view endpoint);
// The same back.
std::string FormatEndpoint(const SocketAddress& address);
// "ADDRESS:PORT" from its parts, with brackets where they are needed.
std::string JoinEndpoint(absl::string_view address, int port);

// The bits of the address without the port, the most significant first: 4 bytes of an IPv4 one, 16 of an IPv6 one;
// empty for other families.
std::string AddressBits(const SocketAddress& address);

// Port 0: any free one.
absl::StatusOr<UniqueFd> Listen(const SocketAddress& address);
absl::StatusOr<SocketAddress> LocalAddress(int fd);

// Begins to connect; whether it worked shows when the socket is first written to.
absl::StatusOr<UniqueFd> BeginConnect(absl::string_view endpoint);

// The next connection that waits; an empty one if none does.
absl::StatusOr<UniqueFd> Accept(int listener);

// Moves what can be moved at once: how many bytes, 0 if none now. kUnavailable with the errno in words when the
// connection has ended.
absl::StatusOr<size_t> SendSome(int fd, absl::Span<const iovec> pieces);
absl::StatusOr<size_t> ReceiveSome(int fd, absl::Span<const iovec> pieces);

// kUnavailable if the peer has ended the connection and all it sent has been read. Reads nothing.
absl::Status CheckNotEnded(int fd);

// Moves `pieces` on by `bytes`, dropping what is done.
void Advance(absl::Span<iovec>& pieces, size_t bytes);

}  // namespace farandole
