#include "worker/agent/host_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <bit>
#include <cstddef>

namespace farandole {
namespace {

constexpr size_t kMost = 256;

int CountBits(const unsigned char* bytes, size_t size) {
  int bits = 0;
  for (size_t i = 0; i < size; ++i) bits += std::popcount(bytes[i]);
  return bits;
}

// The address in `from` as text, with the length of `mask`; empty if it is not to be offered.
OfferedAddress Convert(const sockaddr* from, const sockaddr* mask) {
  OfferedAddress offered;
  char text[INET6_ADDRSTRLEN];
  if (from->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(from)->sin_addr, text, sizeof text);
    const auto* bits = reinterpret_cast<const sockaddr_in*>(mask);
    offered.prefix_length =
        mask == nullptr ? 32 : CountBits(reinterpret_cast<const unsigned char*>(&bits->sin_addr), sizeof(in_addr));
  } else if (from->sa_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&address)) return offered;
    ::inet_ntop(AF_INET6, &address, text, sizeof text);
    const auto* bits = reinterpret_cast<const sockaddr_in6*>(mask);
    offered.prefix_length =
        mask == nullptr ? 128 : CountBits(reinterpret_cast<const unsigned char*>(&bits->sin6_addr), sizeof(in6_addr));
  } else {
    return offered;
  }
  offered.address = text;
  return offered;
}

}  // namespace

std::vector<OfferedAddress> HostAddresses() {
  std::vector<OfferedAddress> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return all;
  for (const ifaddrs* one = list; one != nullptr && all.size() < kMost; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    OfferedAddress offered = Convert(one->ifa_addr, one->ifa_netmask);
    if (offered.address.empty()) continue;
    offered.interface = one->ifa_name;
    all.push_back(offered);
  }
  ::freeifaddrs(list);
  return all;
}

}  // namespace farandole
