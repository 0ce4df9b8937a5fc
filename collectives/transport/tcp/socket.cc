#include "collectives/transport/tcp/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr char kClosed[] = "it closed the connection";

absl::Status NoEndpoint(absl::string_view endpoint) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", endpoint, "\" is no ADDRESS:PORT (numeric; an IPv6 address in brackets)"));
}

// A connection on which nothing moves is asked after this long whether the other host still knows it.
constexpr int kKeepAliveSeconds = 30;
constexpr int kKeepAliveProbeSeconds = 10;
constexpr int kKeepAliveProbes = 6;

// Small messages leave at once: they are what a collective waits for. No TCP_USER_TIMEOUT: it would also end a
// connection whose peer is there but takes nothing, and back-pressure may last as long as a worker is busy elsewhere.
void SetUpConnection(int fd) {
  const auto set = [fd](int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

absl::Status ConnectionEnded(int error) {
  char buffer[128];
  return absl::UnavailableError(::strerror_r(error, buffer, sizeof buffer));
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

msghdr MessageOf(absl::Span<const iovec> pieces) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return message;
}

}  // namespace

absl::StatusOr<SocketAddress> ParseEndpoint(absl::string_view endpoint) {
  const size_t colon = endpoint.rfind(':');
  if (colon == absl::string_view::npos) return NoEndpoint(endpoint);
  absl::string_view host = endpoint.substr(0, colon);
  const absl::string_view port = endpoint.substr(colon + 1);
  int number = 0;
  if (!absl::SimpleAtoi(port, &number) || number < 0 || number > 65535) return NoEndpoint(endpoint);
  const bool bracketed = absl::StartsWith(host, "[") && absl::EndsWith(host, "]") && host.size() > 2;
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || bracketed != absl::StrContains(host, ':')) return NoEndpoint(endpoint);
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(std::string(host).c_str(), std::to_string(number).c_str(), &hints, &found) != 0) {
    return NoEndpoint(endpoint);
  }
  SocketAddress address;
  address.length = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address;
}

std::string JoinEndpoint(absl::string_view address, int port) {
  return absl::StrContains(address, ':') ? absl::StrCat("[", address, "]:", port) : absl::StrCat(address, ":", port);
}

std::string FormatEndpoint(const SocketAddress& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an address that cannot be printed";
  }
  return JoinEndpoint(host, std::atoi(port));
}

std::string AddressBits(const SocketAddress& address) {
  const auto bytes = [](const auto& bits) { return std::string(reinterpret_cast<const char*>(&bits), sizeof bits); };
  switch (address.storage.ss_family) {
    case AF_INET:
      return bytes(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr);
    case AF_INET6:
      return bytes(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
    default:
      return "";
  }
}

absl::StatusOr<UniqueFd> Listen(const SocketAddress& address) {
  const std::string where = FormatEndpoint(address);
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("make a socket for ", where));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), address.get(), address.length) != 0) return ErrnoStatus(errno, absl::StrCat("bind ", where));
  if (::listen(fd.get(), SOMAXCONN) != 0) return ErrnoStatus(errno, absl::StrCat("listen on ", where));
  return fd;
}

absl::StatusOr<SocketAddress> LocalAddress(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    return ErrnoStatus(errno, "getsockname");
  }
  return address;
}

absl::StatusOr<UniqueFd> BeginConnect(absl::string_view endpoint) {
  ASSIGN_OR_RETURN(const SocketAddress address, ParseEndpoint(endpoint));
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("make a socket for ", endpoint));
  SetUpConnection(fd.get());
  if (::connect(fd.get(), address.get(), address.length) != 0 && errno != EINPROGRESS && errno != EINTR) {
    return ConnectionEnded(errno);
  }
  return fd;
}

absl::StatusOr<UniqueFd> Accept(int listener) {
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) {
    SetUpConnection(fd.get());
    return fd;
  }
  // A connection that was reset while it waited is no error of the listener.
  if (WouldBlock(errno) || errno == EINTR || errno == ECONNABORTED) return UniqueFd();
  return ErrnoStatus(errno, "accept a connection");
}

absl::StatusOr<size_t> SendSome(int fd, absl::Span<const iovec> pieces) {
  const msghdr message = MessageOf(pieces);
  while (true) {
    const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (WouldBlock(errno)) return size_t{0};
    if (errno != EINTR) return ConnectionEnded(errno);
  }
}

absl::StatusOr<size_t> ReceiveSome(int fd, absl::Span<const iovec> pieces) {
  msghdr message = MessageOf(pieces);
  while (true) {
    const ssize_t received = ::recvmsg(fd, &message, MSG_DONTWAIT);
    if (received > 0) return static_cast<size_t>(received);
    if (received == 0) return absl::UnavailableError(kClosed);
    if (WouldBlock(errno)) return size_t{0};
    if (errno != EINTR) return ConnectionEnded(errno);
  }
}

absl::Status CheckNotEnded(int fd) {
  char byte;
  while (true) {
    const ssize_t peeked = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (peeked > 0 || (peeked < 0 && WouldBlock(errno))) return absl::OkStatus();
    if (peeked == 0) return absl::UnavailableError(kClosed);
    if (errno != EINTR) return ConnectionEnded(errno);
  }
}

void Advance(absl::Span<iovec>& pieces, size_t bytes) {
  while (!pieces.empty()) {
    iovec& first = pieces.front();
    const size_t done = std::min(bytes, first.iov_len);
    first.iov_base = static_cast<char*>(first.iov_base) + done;
    first.iov_len -= done;
    bytes -= done;
    if (first.iov_len > 0) return;
    pieces.remove_prefix(1);
  }
}

}  // namespace farandole
