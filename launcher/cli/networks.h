#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "launcher/cli/ip_address.h"
#include "launcher/cli/settings.h"

namespace farandole {

// Which of a host's networks a person wants its workers to talk over.
struct NetworkChoice {
  struct Rule {
    std::string host = {};               // empty: every host that no rule names
    std::string wanted = {};             // as it was written: "eth0", "10.0.0.0/8"
    absl::optional<IpRange> range = {};  // else `wanted` is the name of an interface
    friend bool operator==(const Rule&, const Rule&) = default;
  };
  std::vector<Rule> rules;  // in the order of preference; none: no wish

  bool empty() const { return rules.empty(); }
  friend bool operator==(const NetworkChoice&, const NetworkChoice&) = default;
};

// Reads the values of --network-interface(s), which add up. Each is a list with commas of
//
//   eth0            an interface
//   10.0.0.0/8      the interfaces with an address in this range; fd00::/8, or a single address
//   HOST=eth0       the same for one host, which then has only what is said of it; a host may stand several times
//
// Errors: InvalidArgument with the option, the item and a hint.
absl::StatusOr<NetworkChoice> ParseNetworkChoice(absl::Span<const Setting> settings);

}  // namespace farandole
