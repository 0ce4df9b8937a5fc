#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collectives/transport/tcp/candidates.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// The ports that a listener may take, both included. 0 to 0: any free one.
struct PortRange {
  int first = 0;
  int last = 0;
  bool any() const { return last == 0; }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// A socket that accepts on one address.
struct ListenSocket {
  UniqueFd fd;
  std::string endpoint;  // "ADDRESS:PORT"
  OwnAddress address;
};

// Listens on each of `addresses` (numeric; IPv6 without brackets, a link-local one with its %zone), on exactly these
// and on a free port of `ports` each, found by binding. One that is named twice is taken once. An address that cannot
// be listened on is left out with a warning, unless none can, and so is what comes after the first kEndpointsMax.
//
// Errors: kInvalidArgument for what is no numeric address, and for one that others cannot connect to ("0.0.0.0"); else
// the system's, or kResourceExhausted when no port of the range is free. The message has address and range.
absl::StatusOr<std::vector<ListenSocket>> ListenOnAll(absl::Span<const std::string> addresses, PortRange ports);

}  // namespace farandole
