#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// A socket that listens on one numeric address.
struct TcpListener {
  UniqueFd fd;           // non-blocking
  std::string endpoint;  // "ADDRESS:PORT", IPv6 in brackets
};

// On a free port of `first_port` to `last_port`, tried in order from a random one; 0 to 0: on one that the system
// chooses. Errors: InvalidArgument: `address` is not numeric, or means all addresses; Unavailable, with the address,
// the range and the system's reason for the last port.
absl::StatusOr<TcpListener> ListenTcp(const std::string& address, int first_port, int last_port);

// "ADDRESS PORT" of a socket's address, without brackets and scope. Empty: it is neither IPv4 nor IPv6.
std::string PeerKey(const sockaddr_storage& address);
// The same of what gRPC calls a peer: "ipv4:1.2.3.4:5", "ipv6:[::1]:5", the brackets percent-encoded or not.
std::string PeerKey(absl::string_view grpc_peer);

}  // namespace farandole
