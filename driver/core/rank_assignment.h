#pragma once

#include <vector>

#include "driver/core/driver_config.h"
#include "driver/core/ids.h"

namespace farandole {

struct RankedSlot {
  SlotId slot;
  Placement placement;
  friend bool operator==(const RankedSlot&, const RankedSlot&) = default;
};

// Deals `np` ranks over the slots of `hosts`, host by host in their order; the r-th element has rank r. Slots beyond np
// stay empty. The local rank counts the workers of a host; the cross rank says which one a host is among those that
// have a worker of the same local rank. `np` is at most the number of slots.
std::vector<RankedSlot> AssignRanks(const std::vector<HostSlots>& hosts, int np);

}  // namespace farandole
