#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace farandole {

// What a host's name means on this machine.
struct HostAddress {
  bool local = false;
  // Numeric, as the resolver has them; none: the name is not known here. It may be an alias of the user's ssh
  // configuration, or come to be known.
  std::vector<std::string> addresses;
  // For a local host of a job that is all on this machine: the address that its workers listen on. Loopback, in the
  // family that the user wrote ("::1", "127.0.0.2").
  std::string data_address;
};

// Looks `hosts` up, many at a time. One is local if an address of it is loopback (127/8, ::1) or belongs to an
// interface of this machine; "localhost" is without any lookup. Blocks as long as the resolver does. Errors: Internal:
// the machine does not tell its interfaces.
absl::StatusOr<std::map<std::string, HostAddress>> LookUpHosts(const std::vector<std::string>& hosts);

// The interface that has 127.0.0.1, as a rule "lo"; empty if there is none.
std::string LoopbackInterface();

}  // namespace farandole
