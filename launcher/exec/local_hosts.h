#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace farandole {

// What a host's name means on this machine.
struct HostAddress {
  bool local = false;
  // For a local host: the address that its workers listen on. Loopback, in the family that the user wrote ("::1",
  // "127.0.0.2"), since all workers are here.
  std::string data_address;
};

// Looks `host` up. It is local if one of its addresses is loopback (127/8, ::1) or belongs to an interface of this
// machine; "localhost" is without any lookup. Blocks as long as the resolver does. Errors: InvalidArgument with the
// resolver's reason; Internal: the machine does not tell its interfaces.
absl::StatusOr<HostAddress> LookUpHost(const std::string& host);

// The interface that has 127.0.0.1, as a rule "lo"; empty if there is none.
std::string LoopbackInterface();

}  // namespace farandole
