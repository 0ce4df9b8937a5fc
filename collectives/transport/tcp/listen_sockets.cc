#include "collectives/transport/tcp/listen_sockets.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "collectives/transport/tcp/socket.h"
#include "tools/base/log.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

std::string Describe(absl::string_view address, PortRange ports) {
  if (ports.any()) return std::string(address);
  return absl::StrCat(address, ", ports ", ports.first, "-", ports.last);
}

SocketAddress FromKernel(const sockaddr* address) {
  SocketAddress copy;
  copy.length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&copy.storage, address, copy.length);
  return copy;
}

bool IsInternet(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

int BitsSet(absl::string_view mask) {
  int bits = 0;
  for (const char byte : mask) bits += __builtin_popcount(static_cast<unsigned char>(byte));
  return bits;
}

// Length of the prefix of the network that `bits` is in, by the interfaces of this host; -1 if none has the address.
int PrefixOf(const std::string& bits) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return -1;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!IsInternet(entry->ifa_addr) || entry->ifa_netmask == nullptr) continue;
    if (AddressBits(FromKernel(entry->ifa_addr)) != bits) continue;
    // The family of a mask may be left out.
    SocketAddress mask = FromKernel(entry->ifa_netmask);
    mask.storage.ss_family = entry->ifa_addr->sa_family;
    return BitsSet(AddressBits(mask));
  }
  return -1;
}

std::string ZoneOf(const SocketAddress& address) {
  if (address.storage.ss_family != AF_INET6) return "";
  const uint32_t scope = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_scope_id;
  char name[IF_NAMESIZE];
  return scope != 0 && ::if_indextoname(scope, name) != nullptr ? name : "";
}

absl::StatusOr<UniqueFd> ListenInRange(absl::string_view address, PortRange ports) {
  for (int port = ports.first; port <= ports.last; ++port) {
    ASSIGN_OR_RETURN(const SocketAddress wanted, ParseEndpoint(JoinEndpoint(address, port)));
    absl::StatusOr<UniqueFd> fd = Listen(wanted);
    // In use: shown by bind, or, when two bind at the same moment, by listen.
    if (fd.ok() || !absl::IsFailedPrecondition(fd.status())) return fd;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("listen on ", Describe(address, ports), ": all ", ports.last - ports.first + 1,
                   " are in use; each worker of a host needs one for each of its addresses: widen the range"));
}

absl::StatusOr<OwnAddress> ReadAddress(const std::string& address) {
  const absl::StatusOr<SocketAddress> read = ParseEndpoint(JoinEndpoint(address, 0));
  if (!read.ok())
    return absl::InvalidArgumentError(absl::StrCat("\"", address, "\" is no numeric address of this host"));
  const std::string bits = AddressBits(*read);
  if (bits.find_first_not_of('\0') == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(address, " is no address that others can connect to"));
  }
  return OwnAddress{bits, PrefixOf(bits), ZoneOf(*read)};
}

absl::Status ListenOn(const std::string& address, PortRange ports, std::vector<ListenSocket>* sockets) {
  ASSIGN_OR_RETURN(OwnAddress own, ReadAddress(address));
  for (const ListenSocket& other : *sockets) {
    if (other.address.bits == own.bits && other.address.zone == own.zone) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(UniqueFd fd, ListenInRange(address, ports));
  ASSIGN_OR_RETURN(const SocketAddress bound, LocalAddress(fd.get()));
  sockets->push_back({std::move(fd), FormatEndpoint(bound), std::move(own)});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ListenSocket>> ListenOnAll(absl::Span<const std::string> addresses, PortRange ports) {
  std::vector<ListenSocket> sockets;
  std::vector<absl::Status> failures;
  for (const std::string& address : addresses.subspan(0, kEndpointsMax)) {
    const absl::Status status = ListenOn(address, ports, &sockets);
    if (!status.ok()) failures.push_back(status);
  }
  if (addresses.size() > kEndpointsMax) {
    failures.push_back(
        absl::OutOfRangeError(absl::StrCat(addresses[kEndpointsMax], " and what follows is too much: of ",
                                           addresses.size(), " addresses the first ", kEndpointsMax, " are used")));
  }
  if (failures.empty() && sockets.empty()) return absl::InvalidArgumentError("no address to listen on");
  if (failures.empty()) return sockets;
  const std::string reasons = absl::StrJoin(
      failures, "; ", [](std::string* out, const absl::Status& failure) { absl::StrAppend(out, failure.message()); });
  if (sockets.empty()) return absl::Status(failures.front().code(), reasons);
  LOG(WARNING) << "data links of this worker: " << reasons << ". The rest of its addresses are used: "
               << absl::StrJoin(sockets, ", ", [](std::string* out, const ListenSocket& socket) {
                    absl::StrAppend(out, socket.endpoint);
                  });
  return sockets;
}

}  // namespace farandole
