#include "collectives/schedule/choice.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace farandole {
namespace {

constexpr Algorithm kFlat[] = {Algorithm::kDirect, Algorithm::kRing, Algorithm::kHalvingDoubling};

}  // namespace

CostModel DefaultCostModel() { return {{1e-6, 1 / 5e9}, {25e-6, 1 / 1.25e9}, 1 / 10e9}; }

Program ProgramOf(const AllReduceWay& way, const Topology& topology) {
  if (way.algorithm == Algorithm::kHierarchical) return HierarchicalAllReduce(way.across, topology);
  return FlatAllReduce(way.algorithm, topology.size());
}

AllReduceCosts::AllReduceCosts(const CostModel& model, const Topology& topology) {
  for (Algorithm algorithm : kFlat) Add(model, topology, {algorithm, algorithm});
  if (topology.hosts() < 2 || topology.hosts() == topology.size()) return;
  for (Algorithm across : kFlat) Add(model, topology, {Algorithm::kHierarchical, across});
}

void AllReduceCosts::Add(const CostModel& model, const Topology& topology, const AllReduceWay& way) {
  Candidate candidate{way, {}};
  for (const Round& round : ProgramOf(way, topology)) candidate.rounds.push_back(CostOf(model, topology, round));
  candidates_.push_back(std::move(candidate));
}

AllReduceCosts::RoundCost AllReduceCosts::CostOf(const CostModel& model, const Topology& topology, const Round& round) {
  RoundCost cost;
  cost.times = static_cast<double>(round.times);
  std::vector<double> out(topology.hosts(), 0);
  std::vector<double> in(topology.hosts(), 0);
  double longest = 0;  // of those between hosts
  for (const Message& message : round.messages) {
    const int from = topology.host_of[message.from];
    const int to = topology.host_of[message.to];
    if (from == to) {
      cost.local.alpha = model.local.alpha;
      cost.local.beta = std::max(cost.local.beta, message.share * (model.local.beta + round.reduced * model.gamma));
      continue;
    }
    cost.network.alpha = model.network.alpha;
    longest = std::max(longest, message.share);
    out[from] += message.share;
    in[to] += message.share;
  }
  if (cost.network.alpha > 0) {
    cost.network.beta = longest * (model.network.beta + round.reduced * model.gamma);
    cost.link = model.network.beta *
                std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
  }
  return cost;
}

std::vector<AllReduceWay> AllReduceCosts::ways() const {
  std::vector<AllReduceWay> ways;
  for (const Candidate& candidate : candidates_) ways.push_back(candidate.way);
  return ways;
}

double AllReduceCosts::SecondsOf(const Candidate& candidate, int64_t bytes) {
  const double size = static_cast<double>(bytes);
  double seconds = 0;
  double last_message = 0;
  for (const RoundCost& round : candidate.rounds) {
    const double message = round.network.alpha + size * round.network.beta;
    const double link = size * round.link;
    const double slowest = std::max({round.local.alpha + size * round.local.beta, message, link});
    seconds += round.times * slowest;
    last_message = std::max(last_message, round.network.alpha + link - slowest);
  }
  return seconds + last_message;
}

double AllReduceCosts::Seconds(const AllReduceWay& way, int64_t bytes) const {
  for (const Candidate& candidate : candidates_) {
    if (candidate.way == way) return SecondsOf(candidate, bytes);
  }
  return std::numeric_limits<double>::infinity();
}

AllReduceWay AllReduceCosts::Choose(int64_t bytes) const {
  return std::min_element(
             candidates_.begin(), candidates_.end(),
             [bytes](const Candidate& a, const Candidate& b) { return SecondsOf(a, bytes) < SecondsOf(b, bytes); })
      ->way;
}

}  // namespace farandole
