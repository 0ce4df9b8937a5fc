#pragma once

#include <vector>

#include "driver/core/ids.h"

namespace farandole {

// The addresses of this machine's interfaces that are up, in the system's order: what an agent offers for its host. All
// of them, loopback and bridges included; which ones other hosts can reach is not for this machine to say. IPv6
// addresses that hold for one link alone are left out, as others could not name the link. At most 256.
std::vector<OfferedAddress> HostAddresses();

}  // namespace farandole
