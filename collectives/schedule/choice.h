#pragma once

#include <cstdint>
#include <vector>

#include "collectives/core/tuning.h"
#include "collectives/schedule/programs.h"

namespace farandole {

// What a message costs: alpha + bytes * beta, in seconds and seconds per byte (Hockney 1994).
struct LinkCost {
  double alpha = 0;
  double beta = 0;
};

// The ranks of a host share its network link in each direction: what they send at the same time adds up in beta.
struct CostModel {
  LinkCost local;    // inside a host
  LinkCost network;  // between hosts
  double gamma = 0;  // seconds for each byte that is reduced
};

// Orders of magnitude of today's hosts, not measured on the user's: shared memory inside (1 us, 5 GB/s), a network of
// 10 Gbit/s (25 us, 1.25 GB/s), reducing at 10 GB/s. Right as long as the ratios are; Algorithm by name overrides.
CostModel DefaultCostModel();

// How an allreduce goes. `across` is the way between the hosts if `algorithm` is kHierarchical.
struct AllReduceWay {
  Algorithm algorithm = Algorithm::kRing;
  Algorithm across = Algorithm::kRing;
  friend bool operator==(const AllReduceWay&, const AllReduceWay&) = default;
};

// What an allreduce costs in a group, for tensors of any size. Made once for a group in O(size log(size)); asked in
// O(log(size)). The same on all ranks, so all choose alike. Pure; thread-safe.
class AllReduceCosts {
 public:
  AllReduceCosts(const CostModel& model, const Topology& topology);

  // All ways that the group has: the flat ones; the hierarchical ones if some host has several ranks and there are
  // several hosts.
  std::vector<AllReduceWay> ways() const;

  // The sum of the rounds. A round takes as long as its slowest message, or as long as the busiest host's link is busy:
  // while one rank's message is under way the next one's is on the link. Only once, in the round where it matters most,
  // does the whole group wait for the last message over a link.
  double Seconds(const AllReduceWay& way, int64_t bytes) const;

  // The cheapest, bytes >= 0.
  AllReduceWay Choose(int64_t bytes) const;

 private:
  // A round as lines over the size of the tensor: the highest one holds.
  struct RoundCost {
    LinkCost local;
    LinkCost network;  // one message
    double link = 0;   // all messages over the busiest link, seconds per byte
    double times = 1;
  };
  struct Candidate {
    AllReduceWay way;
    std::vector<RoundCost> rounds;
  };

  static RoundCost CostOf(const CostModel& model, const Topology& topology, const Round& round);
  static double SecondsOf(const Candidate& candidate, int64_t bytes);
  void Add(const CostModel& model, const Topology& topology, const AllReduceWay& way);

  std::vector<Candidate> candidates_;
};

// The program of a way.
Program ProgramOf(const AllReduceWay& way, const Topology& topology);

}  // namespace farandole
