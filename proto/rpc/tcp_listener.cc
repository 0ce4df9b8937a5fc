#include "proto/rpc/tcp_listener.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "tools/base/errno_status.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr int kBacklog = 4096;  // the system has its own limit below

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

void SetPort(int port, Address* address) {
  const auto network = htons(static_cast<uint16_t>(port));
  if (address->storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&address->storage)->sin_port = network;
  } else {
    reinterpret_cast<sockaddr_in6*>(&address->storage)->sin6_port = network;
  }
}

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  bool all = false;
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    address.storage.ss_family = AF_INET;
    address.size = sizeof *v4;
    all = v4->sin_addr.s_addr == INADDR_ANY;
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    address.storage.ss_family = AF_INET6;
    address.size = sizeof *v6;
    all = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is no numeric address"));
  }
  if (all) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " means every address of this machine; it listens on single ones"));
  }
  return address;
}

// Null, with errno, if the port cannot be had.
UniqueFd TryPort(const Address& address) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  const int one = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (address.storage.ss_family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0 &&
      ::listen(fd.get(), kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

std::string Endpoint(int fd, const std::string& text) {
  Address bound;
  bound.size = sizeof bound.storage;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.size);
  const bool v6 = bound.storage.ss_family == AF_INET6;
  const uint16_t port = ntohs(v6 ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                                 : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
  return v6 ? absl::StrCat("[", text, "]:", port) : absl::StrCat(text, ":", port);
}

}  // namespace

absl::StatusOr<TcpListener> ListenTcp(const std::string& address, int first_port, int last_port) {
  ASSIGN_OR_RETURN(Address to, ParseAddress(address));
  const int count = last_port - first_port + 1;
  if (first_port < 0 || last_port > 65535 || count < 1) {
    return absl::InvalidArgumentError(absl::StrCat("ports ", first_port, " to ", last_port, " are no range of ports"));
  }
  const int start = static_cast<int>(RandomId() % static_cast<uint64_t>(count));
  int error = 0;
  for (int i = 0; i < count; ++i) {
    SetPort(first_port + (start + i) % count, &to);
    UniqueFd fd = TryPort(to);
    if (fd) {
      std::string endpoint = Endpoint(fd.get(), address);
      return TcpListener{std::move(fd), std::move(endpoint)};
    }
    error = errno;
    if (error != EADDRINUSE && error != EACCES) break;  // another port would not help
  }
  const std::string range = last_port == 0 ? "any port" : absl::StrCat("a port of ", first_port, " to ", last_port);
  return absl::UnavailableError(ErrnoStatus(error, absl::StrCat("listening on ", address, ", ", range)).message());
}

std::string PeerKey(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN];
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return absl::StrCat(text, " ", ntohs(v4.sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return absl::StrCat(text, " ", ntohs(v6.sin6_port));
}

std::string PeerKey(absl::string_view grpc_peer) {
  const std::string plain = absl::StrReplaceAll(grpc_peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  absl::string_view rest = plain;
  if (!absl::ConsumePrefix(&rest, "ipv4:") && !absl::ConsumePrefix(&rest, "ipv6:")) return "";
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return "";
  absl::string_view address = rest.substr(0, colon);
  if (absl::ConsumePrefix(&address, "[")) absl::ConsumeSuffix(&address, "]");
  return absl::StrCat(address.substr(0, address.find('%')), " ", rest.substr(colon + 1));
}

}  // namespace farandole
