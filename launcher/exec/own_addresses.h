#pragma once

#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace farandole {

// Numeric addresses of this machine's interfaces that are up. `global_only`: neither loopback nor link-local.
std::vector<std::string> OwnAddresses(bool global_only);

// The address that this machine would send from to `numeric_address`. None: there is no route, or it is not numeric.
absl::optional<std::string> SourceAddressTowards(const std::string& numeric_address);

// On which addresses the driver may be called back by a host that saw the ends of an ssh connection as these two
// (either may be empty), best first: the one that it saw, if it is ours (not behind a translation of addresses); else
// the one that packets to it leave from; else all global ones.
std::vector<std::string> CallBackAddresses(const std::string& seen_of_us, const std::string& seen_of_it);

}  // namespace farandole
