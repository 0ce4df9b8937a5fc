#pragma once

// The schedules of an allreduce written out for all ranks at once: what a cost is estimated from (choice.h) and what
// the simulated network runs (sim/). Pure arithmetic.

#include <cstdint>
#include <vector>

#include "collectives/core/group.h"
#include "collectives/core/tuning.h"

namespace farandole {

// Which host each rank is on; hosts are numbered from 0.
struct Topology {
  std::vector<int> host_of;

  int size() const { return static_cast<int>(host_of.size()); }
  int hosts() const;
  // The ranks of each host, in rank order.
  std::vector<std::vector<Rank>> members() const;
};

// `hosts` hosts, `each` ranks on each, those of a host one after the other.
Topology UniformTopology(int hosts, int each);

// A part of the tensor on its way. `share` is of its bytes; parts are not rounded to elements.
struct Message {
  Rank from = 0;
  Rank to = 0;
  double share = 0;
};

// A rank enters the next round when it has sent and received all of its own messages of this one.
struct Round {
  std::vector<Message> messages;
  int64_t times = 1;   // so often one after the other
  double reduced = 0;  // so many bytes are reduced for each byte received
};

using Program = std::vector<Round>;

// kDirect, kRing or kHalvingDoubling over all ranks, wherever they are.
Program FlatAllReduce(Algorithm algorithm, int size);

// Inside each host a reduce-scatter over its first k ranks, k being the number of ranks of the smallest host; an
// allreduce by `across` of each share between the hosts, all at once; an allgather inside each host.
Program HierarchicalAllReduce(Algorithm across, const Topology& topology);

}  // namespace farandole
