#include "launcher/exec/own_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

bool IsGlobal(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const uint32_t bits = ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
    return bits >> 24 != 127 && bits >> 16 != 0xa9fe;
  }
  const in6_addr& bits = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return !IN6_IS_ADDR_LOOPBACK(&bits) && !IN6_IS_ADDR_LINKLOCAL(&bits);
}

socklen_t SizeOf(const sockaddr& address) {
  return address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::string Numeric(const sockaddr& address) {
  char text[NI_MAXHOST] = "";
  ::getnameinfo(&address, SizeOf(address), text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

bool IsOneOf(const std::vector<std::string>& addresses, const std::string& address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

}  // namespace

std::vector<std::string> OwnAddresses(bool global_only) {
  std::vector<std::string> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, &::freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    if (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6) continue;
    if (global_only && !IsGlobal(*one->ifa_addr)) continue;
    const std::string text = Numeric(*one->ifa_addr);
    if (!IsOneOf(addresses, text)) addresses.push_back(text);
  }
  return addresses;
}

absl::optional<std::string> SourceAddressTowards(const std::string& numeric_address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(numeric_address.c_str(), "9", &hints, &found) != 0) return absl::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, &::freeaddrinfo);
  // Connecting a datagram socket chooses a route and sends nothing.
  const UniqueFd fd(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage source{};
  socklen_t size = sizeof source;
  if (!fd || ::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&source), &size) != 0) {
    return absl::nullopt;
  }
  return Numeric(reinterpret_cast<const sockaddr&>(source));
}

std::vector<std::string> CallBackAddresses(const std::string& seen_of_us, const std::string& seen_of_it) {
  if (!seen_of_us.empty() && IsOneOf(OwnAddresses(false), seen_of_us)) return {seen_of_us};
  if (!seen_of_it.empty()) {
    if (const absl::optional<std::string> source = SourceAddressTowards(seen_of_it)) return {*source};
  }
  return OwnAddresses(true);
}

}  // namespace farandole
