#include "driver/core/rank_assignment.h"

#include <algorithm>

namespace farandole {

std::vector<RankedSlot> AssignRanks(const std::vector<HostSlots>& hosts, int np) {
  std::vector<RankedSlot> ranked;
  std::vector<int> hosts_with_local_rank;  // by local rank
  for (const HostSlots& host : hosts) {
    const int first_rank = static_cast<int>(ranked.size());
    const int local_size = std::min(host.slots, np - first_rank);
    for (int local_rank = 0; local_rank < local_size; ++local_rank) {
      if (local_rank == static_cast<int>(hosts_with_local_rank.size())) hosts_with_local_rank.push_back(0);
      Placement placement;
      placement.rank = first_rank + local_rank;
      placement.size = np;
      placement.local_rank = local_rank;
      placement.local_size = local_size;
      placement.cross_rank = hosts_with_local_rank[local_rank]++;
      ranked.push_back({SlotId{host.name, local_rank}, placement});
    }
  }
  for (RankedSlot& slot : ranked) slot.placement.cross_size = hosts_with_local_rank[slot.placement.local_rank];
  return ranked;
}

}  // namespace farandole
