// The estimates of choice.h against the simulated network. --table prints cost against size.
#include "collectives/schedule/choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "collectives/core/tuning.h"
#include "collectives/schedule/programs.h"
#include "collectives/schedule/sim/network.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

struct Group {
  int hosts;
  int each;
};

// 8, 16, 48, 64, 256, 1000, 1024 and 4096 ranks: on one host, one on each host, and several on each.
constexpr Group kGroups[] = {{1, 8},   {8, 1},   {2, 4},    {1, 16},  {16, 1},   {2, 8},   {1, 48}, {48, 1},
                             {6, 8},   {1, 64},  {64, 1},   {8, 8},   {16, 4},   {256, 1}, {32, 8}, {1000, 1},
                             {125, 8}, {250, 4}, {1024, 1}, {128, 8}, {4096, 1}, {512, 8}};

std::vector<int64_t> Sizes() {
  std::vector<int64_t> sizes;
  for (int64_t bytes = 4; bytes <= int64_t{1} << 30; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

std::string NameOf(const AllReduceWay& way) {
  const absl::string_view name = Name(way.algorithm);
  std::string text(name.data(), name.size());
  if (way.algorithm != Algorithm::kHierarchical) return text;
  const absl::string_view across = Name(way.across);
  return text + "/" + std::string(across.data(), across.size());
}

constexpr CostModel kModel = {{2e-6, 1e-9}, {20e-6, 4e-9}, 0.5e-9};

double Log2(int n) { return std::log2(n); }

TEST(Network, TakesWhatTheClosedFormsSay) {
  for (const int n : {2, 8, 64, 1024}) {
    for (const double bytes : {4.0, 65536.0, 1e9}) {
      const auto run = [&](Algorithm algorithm) {
        return sim::Run(kModel, UniformTopology(n, 1), FlatAllReduce(algorithm, n), static_cast<int64_t>(bytes));
      };
      const auto [alpha, beta] = kModel.network;
      const double ring = 2 * (n - 1) * (alpha + bytes / n * beta) + (n - 1) * bytes / n * kModel.gamma;
      EXPECT_NEAR(run(Algorithm::kRing), ring, 1e-6 * ring) << n;
      const double halving = 2 * Log2(n) * alpha + (n - 1) * bytes / n * (2 * beta + kModel.gamma);
      EXPECT_NEAR(run(Algorithm::kHalvingDoubling), halving, 1e-6 * halving) << n;
      const double direct = Log2(n) * alpha + (n - 1) * bytes * (beta + kModel.gamma);
      EXPECT_NEAR(run(Algorithm::kDirect), direct, 1e-6 * direct) << n;
    }
  }
}

TEST(Network, RanksOfAHostShareItsLink) {
  // Four ranks send to another host at once: the bytes one after the other, the latency once.
  const Topology topology = UniformTopology(2, 4);
  const Program program = {{{{0, 4, 1}, {1, 5, 1}, {2, 6, 1}, {3, 7, 1}}, 1, 0}};
  const double expected = kModel.network.alpha + 4 * 1e6 * kModel.network.beta;
  EXPECT_NEAR(sim::Run(kModel, topology, program, 1000000), expected, 1e-9 * expected);
}

TEST(Network, AHierarchyCrossesTheLinkWithTheTensorNoMoreThanTwice) {
  const Topology topology = UniformTopology(8, 4);
  const double bytes = 1e9;
  const double seconds =
      sim::Run(kModel, topology, HierarchicalAllReduce(Algorithm::kRing, topology), static_cast<int64_t>(bytes));
  const double network = 2 * bytes * 7 / 8 * kModel.network.beta;
  const double inside = 2 * bytes * 3 / 4 * (kModel.local.beta + kModel.gamma);
  EXPECT_GT(seconds, network);
  EXPECT_LT(seconds, 1.05 * (network + inside + bytes * kModel.gamma));
}

TEST(Network, WhatIsExtrapolatedIsWhatWouldHaveRun) {
  const Topology topology = UniformTopology(5, 3);
  Program once = FlatAllReduce(Algorithm::kRing, topology.size());
  Program written_out;
  for (const Round& round : once) {
    for (int64_t i = 0; i < round.times; ++i) written_out.push_back({round.messages, 1, round.reduced});
  }
  const double expected = sim::Run(kModel, topology, written_out, 1 << 20);
  EXPECT_NEAR(sim::Run(kModel, topology, once, 1 << 20), expected, 1e-6 * expected);
}

class ChoiceTest : public ::testing::TestWithParam<Group> {};

TEST_P(ChoiceTest, IsWithinATenthOfTheBestAtEverySize) {
  const Topology topology = UniformTopology(GetParam().hosts, GetParam().each);
  for (const CostModel& model : {DefaultCostModel(), kModel}) {
    const AllReduceCosts costs(model, topology);
    std::vector<Program> programs;
    for (const AllReduceWay& way : costs.ways()) programs.push_back(ProgramOf(way, topology));
    for (const int64_t bytes : Sizes()) {
      const AllReduceWay chosen = costs.Choose(bytes);
      double best = std::numeric_limits<double>::infinity();
      double of_chosen = best;
      std::string name_of_best;
      for (size_t i = 0; i < programs.size(); ++i) {
        const double seconds = sim::Run(model, topology, programs[i], bytes);
        if (costs.ways()[i] == chosen) of_chosen = seconds;
        if (seconds < best) name_of_best = NameOf(costs.ways()[i]);
        best = std::min(best, seconds);
      }
      EXPECT_LE(of_chosen, 1.1 * best) << bytes << " bytes: " << NameOf(chosen) << ", best is " << name_of_best;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ChoiceTest, ::testing::ValuesIn(kGroups), [](const auto& info) {
  return std::to_string(info.param.hosts) + "x" + std::to_string(info.param.each);
});

TEST(Choice, OnlyAGroupOfSeveralHostsWithSeveralRanksHasAHierarchy) {
  const auto hierarchical = [](const Topology& topology) {
    const auto ways = AllReduceCosts(kModel, topology).ways();
    return std::any_of(ways.begin(), ways.end(),
                       [](const AllReduceWay& way) { return way.algorithm == Algorithm::kHierarchical; });
  };
  EXPECT_FALSE(hierarchical(UniformTopology(1, 4)));
  EXPECT_FALSE(hierarchical(UniformTopology(4, 1)));
  EXPECT_TRUE(hierarchical(UniformTopology(2, 2)));
  EXPECT_TRUE(hierarchical({{0, 1, 1}}));
}

void PrintTable() {
  std::printf("| hosts x ranks | bytes | way | simulated us |\n| --- | --- | --- | --- |\n");
  for (const Group& group : kGroups) {
    const Topology topology = UniformTopology(group.hosts, group.each);
    const AllReduceCosts costs(DefaultCostModel(), topology);
    for (const int64_t bytes : Sizes()) {
      const AllReduceWay way = costs.Choose(bytes);
      std::printf("| %d x %d | %lld | %s | %.1f |\n", group.hosts, group.each, static_cast<long long>(bytes),
                  NameOf(way).c_str(), 1e6 * sim::Run(DefaultCostModel(), topology, ProgramOf(way, topology), bytes));
    }
  }
}

}  // namespace
}  // namespace farandole

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string(argv[1]) == "--table") {
    farandole::PrintTable();
    return 0;
  }
  return RUN_ALL_TESTS();
}
