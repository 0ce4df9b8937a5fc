#include "launcher/exec/local_hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
using InterfaceList = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

constexpr char kIpv4Loopback[] = "127.0.0.1";
constexpr size_t kLookupsAtATime = 32;

// Null: the name is not known.
AddressList Resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) found = nullptr;
  return AddressList(found, &::freeaddrinfo);
}

absl::StatusOr<InterfaceList> Interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return ErrnoStatus(errno, "list of this machine's interfaces");
  return InterfaceList(list, &::freeifaddrs);
}

const in_addr& Ipv4(const sockaddr* address) { return reinterpret_cast<const sockaddr_in*>(address)->sin_addr; }
const in6_addr& Ipv6(const sockaddr* address) { return reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr; }

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) return (ntohl(Ipv4(address).s_addr) >> 24) == 127;
  return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&Ipv6(address));
}

bool SameAddress(const sockaddr* a, const sockaddr* b) {
  if (a == nullptr || b == nullptr || a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) return Ipv4(a).s_addr == Ipv4(b).s_addr;
  return a->sa_family == AF_INET6 && std::memcmp(&Ipv6(a), &Ipv6(b), sizeof(in6_addr)) == 0;
}

std::string Numeric(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* const bytes = address->sa_family == AF_INET ? static_cast<const void*>(&Ipv4(address)) : &Ipv6(address);
  ::inet_ntop(address->sa_family, bytes, text, sizeof text);
  return text;
}

// Where workers of a local host listen; empty: it is another machine.
std::string DataAddress(const addrinfo* addresses, const ifaddrs* interfaces) {
  for (const addrinfo* at = addresses; at != nullptr; at = at->ai_next) {
    if (IsLoopback(at->ai_addr)) return Numeric(at->ai_addr);
  }
  for (const addrinfo* at = addresses; at != nullptr; at = at->ai_next) {
    for (const ifaddrs* mine = interfaces; mine != nullptr; mine = mine->ifa_next) {
      if (SameAddress(at->ai_addr, mine->ifa_addr)) return kIpv4Loopback;
    }
  }
  return "";
}

HostAddress LookUp(const std::string& host, const ifaddrs* interfaces) {
  if (host == "localhost") return HostAddress{true, {kIpv4Loopback}, kIpv4Loopback};
  const AddressList addresses = Resolve(host);
  HostAddress found;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    found.addresses.push_back(Numeric(at->ai_addr));
  }
  found.data_address = DataAddress(addresses.get(), interfaces);
  found.local = !found.data_address.empty();
  return found;
}

}  // namespace

absl::StatusOr<std::map<std::string, HostAddress>> LookUpHosts(const std::vector<std::string>& hosts) {
  ASSIGN_OR_RETURN(const InterfaceList interfaces, Interfaces());
  std::vector<HostAddress> found(hosts.size());
  std::atomic<size_t> next = 0;
  const auto look_up_some = [&] {
    for (size_t i = next++; i < hosts.size(); i = next++) found[i] = LookUp(hosts[i], interfaces.get());
  };
  std::vector<std::thread> helpers;
  while (helpers.size() + 1 < std::min(hosts.size(), kLookupsAtATime)) helpers.emplace_back(look_up_some);
  look_up_some();
  for (std::thread& helper : helpers) helper.join();
  std::map<std::string, HostAddress> by_name;
  for (size_t i = 0; i < hosts.size(); ++i) by_name[hosts[i]] = std::move(found[i]);
  return by_name;
}

std::string LoopbackInterface() {
  const absl::StatusOr<InterfaceList> interfaces = Interfaces();
  if (!interfaces.ok()) return "";
  for (const ifaddrs* mine = interfaces->get(); mine != nullptr; mine = mine->ifa_next) {
    const sockaddr* const address = mine->ifa_addr;
    if (address != nullptr && address->sa_family == AF_INET && Numeric(address) == kIpv4Loopback) return mine->ifa_name;
  }
  return "";
}

}  // namespace farandole
