#include "driver/core/rank_assignment.h"

#include <map>
#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RankedSlot At(const char* host, int slot, Placement placement) { return {SlotId{host, slot}, placement}; }

TEST(RankAssignment, OneHost) {
  EXPECT_THAT(AssignRanks({{"a", 2}}, 2), ElementsAre(At("a", 0, {0, 2, 0, 2, 0, 1}), At("a", 1, {1, 2, 1, 2, 0, 1})));
}

TEST(RankAssignment, HostsAreFilledInTheirOrder) {
  EXPECT_THAT(AssignRanks({{"b", 2}, {"a", 2}}, 4),
              ElementsAre(At("b", 0, {0, 4, 0, 2, 0, 2}), At("b", 1, {1, 4, 1, 2, 0, 2}),
                          At("a", 0, {2, 4, 0, 2, 1, 2}), At("a", 1, {3, 4, 1, 2, 1, 2})));
}

TEST(RankAssignment, UnevenHostsHaveFewerPeersAcrossInTheHigherLocalRanks) {
  EXPECT_THAT(AssignRanks({{"a", 1}, {"b", 3}, {"c", 2}}, 6),
              ElementsAre(At("a", 0, {0, 6, 0, 1, 0, 3}),                                  //
                          At("b", 0, {1, 6, 0, 3, 1, 3}), At("b", 1, {2, 6, 1, 3, 0, 2}),  //
                          At("b", 2, {3, 6, 2, 3, 0, 1}),                                  //
                          At("c", 0, {4, 6, 0, 2, 2, 3}), At("c", 1, {5, 6, 1, 2, 1, 2})));
}

TEST(RankAssignment, SlotsBeyondTheNumberOfProcessesStayEmpty) {
  EXPECT_THAT(AssignRanks({{"a", 4}}, 1), ElementsAre(At("a", 0, {0, 1, 0, 1, 0, 1})));
  EXPECT_THAT(
      AssignRanks({{"a", 2}, {"b", 2}, {"c", 2}}, 3),
      ElementsAre(At("a", 0, {0, 3, 0, 2, 0, 2}), At("a", 1, {1, 3, 1, 2, 0, 1}), At("b", 0, {2, 3, 0, 1, 1, 2})));
  EXPECT_THAT(AssignRanks({{"a", 2}}, 0), IsEmpty());
}

// The definitions, applied literally to whole random assignments.
TEST(RankAssignment, KeepsTheDefinitionsForRandomHosts) {
  Prng prng(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::vector<HostSlots> hosts;
    int slots = 0;
    for (uint64_t h = 0; h <= prng.Below(6); ++h) {
      hosts.push_back({std::string(1, static_cast<char>('a' + h)), 1 + static_cast<int>(prng.Below(5))});
      slots += hosts.back().slots;
    }
    const int np = 1 + static_cast<int>(prng.Below(slots));
    const std::vector<RankedSlot> ranked = AssignRanks(hosts, np);
    ASSERT_EQ(ranked.size(), np);
    std::map<std::string, int> local_size;
    std::map<int, std::vector<std::string>> hosts_by_local_rank;
    for (const RankedSlot& slot : ranked) {
      ++local_size[slot.slot.host];
      hosts_by_local_rank[slot.placement.local_rank].push_back(slot.slot.host);
    }
    for (int r = 0; r < np; ++r) {
      const Placement& placement = ranked[r].placement;
      const std::vector<std::string>& peers = hosts_by_local_rank[placement.local_rank];
      EXPECT_EQ(placement.rank, r);
      EXPECT_EQ(placement.size, np);
      EXPECT_EQ(placement.local_rank, ranked[r].slot.slot);
      EXPECT_EQ(placement.local_size, local_size[ranked[r].slot.host]);
      EXPECT_EQ(placement.cross_size, peers.size());
      EXPECT_EQ(peers.at(placement.cross_rank), ranked[r].slot.host);
    }
  }
}

}  // namespace
}  // namespace farandole
