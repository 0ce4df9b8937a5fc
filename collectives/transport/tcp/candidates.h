#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace farandole {

// In which order to try the addresses of a peer. Pure.

// An address that this process listens on.
struct OwnAddress {
  std::string bits;  // 4 or 16 bytes, the most significant first
  int prefix = -1;   // length of its network's prefix in bits; -1: not known
  std::string zone;  // of a link-local IPv6 address: the interface
};

// An address that a peer says it listens on.
struct Candidate {
  std::string endpoint;  // "ADDRESS:PORT"
  std::string bits;      // of ADDRESS, as above; empty if it cannot be read
};

// The items of GroupMember::endpoint, at most kEndpointsMax of them: it came from another process.
inline constexpr int kEndpointsMax = 32;
std::vector<std::string> SplitEndpoints(absl::string_view endpoints);

// "[fe80::1%eth0]:80" without its zone, "[fe80::1]:80"; others as they are. A zone names an interface of the peer,
// which this host may not have, and no address with such a zone can be read here.
std::string WithoutZone(absl::string_view endpoint);

// The endpoints of `candidates` in the order in which they are tried:
//   1. of a peer on another host, loopback addresses and addresses that are this host's own come last: they exist on
//      every host, or on several, and lead back here
//   2. in the subnet of one of `own`
//   3. of a family (IPv4, IPv6) that `own` has
//   4. where `own` has addresses of unknown prefix: by the length of the beginning in common with the nearest
//   5. as listed
// A link-local address is reached through an interface of this host: it is tried with each zone of `own`, as it is if
// there is none or the peer is on this host. An endpoint that cannot be read keeps its place at the end, so that it is
// reported with the others.
std::vector<std::string> OrderCandidates(absl::Span<const Candidate> candidates, absl::Span<const OwnAddress> own,
                                         bool same_host);

}  // namespace farandole
