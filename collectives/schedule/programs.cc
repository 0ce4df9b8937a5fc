#include "collectives/schedule/programs.h"

#include <algorithm>
#include <utility>

#include "collectives/schedule/exchange_schedule.h"
#include "collectives/schedule/halving_schedule.h"
#include "collectives/schedule/ring_schedule.h"

namespace farandole {
namespace {

Program Direct(int size) {
  Program program;
  for (int step = 0; step < ExchangeSteps(size); ++step) {
    Round round;
    for (Rank rank = 0; rank < size; ++rank) {
      const ExchangeStep now = ExchangeStepOf(size, rank, step);
      round.messages.push_back({rank, now.to, static_cast<double>(now.blocks)});
    }
    round.reduced = 1;
    program.push_back(std::move(round));
  }
  return program;
}

Program Ring(int size) {
  if (size == 1) return {};
  Round round;
  for (Rank rank = 0; rank < size; ++rank) round.messages.push_back({rank, RingNext(size, rank), 1.0 / size});
  round.times = RingSteps(size);
  Round reducing = round;
  reducing.reduced = 1;
  return {std::move(reducing), std::move(round)};
}

// Of the ranks beyond the largest power of two to their partners, or back.
Round Fold(int size, bool back) {
  Round round;
  const int ranks = HalvingRanks(size);
  for (Rank rank = ranks; rank < size; ++rank) {
    if (back) {
      round.messages.push_back({rank - ranks, rank, 1});
    } else {
      round.messages.push_back({rank, rank - ranks, 1});
    }
  }
  round.reduced = back ? 0 : 1;
  return round;
}

Program HalvingDoubling(int size) {
  const int ranks = HalvingRanks(size);
  Program program;
  if (ranks < size) program.push_back(Fold(size, false));
  Program doubling;
  double share = 1;
  for (int distance = ranks / 2; distance >= 1; distance /= 2) {
    share /= 2;
    Round round;
    for (Rank rank = 0; rank < ranks; ++rank) round.messages.push_back({rank, rank ^ distance, share});
    doubling.push_back(round);
    round.reduced = 1;
    program.push_back(std::move(round));
  }
  program.insert(program.end(), doubling.rbegin(), doubling.rend());
  if (ranks < size) program.push_back(Fold(size, true));
  return program;
}

// Inside each host each rank gives each of the first `owners` its share, or gets it from them.
Program InsideHosts(const std::vector<std::vector<Rank>>& members, int owners, bool gather) {
  size_t largest = 0;
  for (const auto& host : members) largest = std::max(largest, host.size());
  Program program;
  for (size_t step = 1; step < largest; ++step) {
    Round round;
    round.reduced = gather ? 0 : 1;
    for (const auto& host : members) {
      for (size_t i = 0; i < host.size() && step < host.size(); ++i) {
        const size_t peer = (i + step) % host.size();
        const size_t owner = gather ? i : peer;
        if (owner < static_cast<size_t>(owners)) round.messages.push_back({host[i], host[peer], 1.0 / owners});
      }
    }
    program.push_back(std::move(round));
  }
  return program;
}

void Append(Program more, Program& to) {
  for (Round& round : more) to.push_back(std::move(round));
}

}  // namespace

int Topology::hosts() const { return host_of.empty() ? 0 : *std::max_element(host_of.begin(), host_of.end()) + 1; }

std::vector<std::vector<Rank>> Topology::members() const {
  std::vector<std::vector<Rank>> members(hosts());
  for (Rank rank = 0; rank < size(); ++rank) members[host_of[rank]].push_back(rank);
  return members;
}

Topology UniformTopology(int hosts, int each) {
  Topology topology;
  for (int i = 0; i < hosts * each; ++i) topology.host_of.push_back(i / each);
  return topology;
}

Program FlatAllReduce(Algorithm algorithm, int size) {
  switch (algorithm) {
    case Algorithm::kDirect:
      return Direct(size);
    case Algorithm::kHalvingDoubling:
      return HalvingDoubling(size);
    default:
      return Ring(size);
  }
}

Program HierarchicalAllReduce(Algorithm across, const Topology& topology) {
  const std::vector<std::vector<Rank>> members = topology.members();
  size_t owners = topology.host_of.size();
  for (const auto& host : members) owners = std::min(owners, host.size());
  Program program = InsideHosts(members, static_cast<int>(owners), false);
  for (const Round& between : FlatAllReduce(across, static_cast<int>(members.size()))) {
    Round round{{}, between.times, between.reduced};
    for (const Message& message : between.messages) {
      for (size_t j = 0; j < owners; ++j) {
        round.messages.push_back(
            {members[message.from][j], members[message.to][j], message.share / static_cast<double>(owners)});
      }
    }
    program.push_back(std::move(round));
  }
  Append(InsideHosts(members, static_cast<int>(owners), true), program);
  return program;
}

}  // namespace farandole
