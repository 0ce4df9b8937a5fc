#include "collectives/schedule/sim/network.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace farandole::sim {
namespace {

class Network {
 public:
  Network(const CostModel& model, const Topology& topology, double bytes)
      : model_(model),
        topology_(topology),
        bytes_(bytes),
        clock_(topology.size(), 0),
        link_out_(topology.hosts(), 0),
        link_in_(topology.hosts(), 0) {}

  void Run(const Round& round) {
    std::vector<double> before = State();
    double last = 0;
    for (int64_t i = 0; i < round.times; ++i) {
      RunOnce(round);
      const std::vector<double> after = State();
      // Clocks enter only by sums and maxima. So if two rounds have moved all of them by one and the same step, so will
      // all further ones.
      const double step = CommonStep(before, after);
      if (step > 0 && std::abs(step - last) <= 1e-9 * step) {
        Shift(step * static_cast<double>(round.times - i - 1));
        return;
      }
      last = step;
      before = after;
    }
  }

  double end() const { return *std::max_element(clock_.begin(), clock_.end()); }

 private:
  void RunOnce(const Round& round) {
    std::vector<size_t> order(round.messages.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return clock_[round.messages[a].from] < clock_[round.messages[b].from];
    });
    std::vector<double> sent = clock_;
    std::vector<double> received = clock_;
    for (const size_t i : order) Carry(round.messages[i], round.reduced, sent, received);
    for (size_t rank = 0; rank < clock_.size(); ++rank) clock_[rank] = std::max(sent[rank], received[rank]);
  }

  void Carry(const Message& message, double reduced, std::vector<double>& sent, std::vector<double>& received) {
    const double bytes = bytes_ * message.share;
    const int from = topology_.host_of[message.from];
    const int to = topology_.host_of[message.to];
    const bool local = from == to;
    const LinkCost& link = local ? model_.local : model_.network;
    // What has left waits before the receiver, not at the sender.
    const double leaves = local ? sent[message.from] : std::max(sent[message.from], link_out_[from]);
    const double there = std::max(leaves, received[message.to]);
    const double comes = local ? there : std::max(there, link_in_[to]);
    if (!local) {
      link_out_[from] = leaves + bytes * link.beta;
      link_in_[to] = comes + bytes * link.beta;
    }
    sent[message.from] = leaves + link.alpha + bytes * link.beta;
    received[message.to] = comes + link.alpha + bytes * (link.beta + reduced * model_.gamma);
  }

  std::vector<double> State() const {
    std::vector<double> state = clock_;
    state.insert(state.end(), link_out_.begin(), link_out_.end());
    state.insert(state.end(), link_in_.begin(), link_in_.end());
    return state;
  }

  // What all have moved by; 0 if that is not one number. Links that carry nothing do not count.
  static double CommonStep(const std::vector<double>& before, const std::vector<double>& after) {
    const double step = after[0] - before[0];
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i] == before[i] && after[i] == 0) continue;
      if (std::abs(after[i] - before[i] - step) > 1e-9 * step) return 0;
    }
    return step;
  }

  void Shift(double by) {
    for (std::vector<double>* times : {&clock_, &link_out_, &link_in_}) {
      for (double& time : *times) {
        if (time != 0) time += by;
      }
    }
  }

  const CostModel& model_;
  const Topology& topology_;
  const double bytes_;
  std::vector<double> clock_;  // when each rank enters the round
  std::vector<double> link_out_;
  std::vector<double> link_in_;
};

}  // namespace

double Run(const CostModel& model, const Topology& topology, const Program& program, int64_t bytes) {
  Network network(model, topology, static_cast<double>(bytes));
  for (const Round& round : program) network.Run(round);
  return network.end();
}

}  // namespace farandole::sim
