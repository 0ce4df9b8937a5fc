#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "collectives/core/group.h"
#include "collectives/engine/coordinator.h"
#include "collectives/engine/wire.h"
#include "gtest/gtest.h"
#include "tools/base/instant.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

constexpr Instant kStart = Instant::FromNanos(1);

GroupSpec SpecOf(int size) {
  GroupSpec spec;
  spec.members.resize(size);
  return spec;
}

// Ranks that ask for some names alone, in groups, and differently, in any interleaving: the k-th answer under a name is
// the k-th use's, the same at every rank; everything is answered, and the sequence has no gap.
class RandomRank {
 public:
  struct Ask {
    std::string name;
    std::vector<int64_t> shape;
    uint64_t group = 0;
    uint32_t group_size = 1;
  };

  void Plan(Ask ask) { plan_.push_back(std::move(ask)); }
  bool done() const { return next_ == plan_.size() && waiting_.empty(); }

  // The next asks, as a list of its own: a group at once. Empty while one of its names still waits.
  RequestList Next(Prng& prng) {
    RequestList list;
    size_t end = next_;
    const size_t members = end < plan_.size() ? plan_[end].group_size : 0;
    for (; end < next_ + members; ++end) {
      if (waiting_.count(plan_[end].name) > 0) return {};
    }
    for (size_t i = next_; i < end; ++i) {
      list.requests.emplace_back();
      list.requests.back().name = plan_[i].name;
      list.requests.back().shape = plan_[i].shape;
      list.requests.back().group = plan_[i].group;
      list.requests.back().group_size = plan_[i].group_size;
      waiting_.insert(plan_[i].name);
    }
    std::swap(next_, end);
    for (size_t i = list.requests.size(); i > 1; --i) {
      std::swap(list.requests[i - 1], list.requests[prng.Below(i)]);
    }
    return list;
  }

  void Hear(const Response& response, Rank rank) {
    const bool own = response.refusal.empty() || absl::c_linear_search(response.refused, rank);
    if (!own) return;
    for (const std::string& name : response.names) {
      EXPECT_EQ(waiting_.erase(name), 1u) << name << " was not asked for by rank " << rank;
      answers[name].push_back(response.refusal);
    }
  }

  std::map<std::string, std::vector<std::string>> answers;

 private:
  std::vector<Ask> plan_;
  size_t next_ = 0;
  std::set<std::string> waiting_;
};

TEST(CoordinatorRandom, AnyInterleavingOfDisagreementsAnswersEveryUseOnceAndAlike) {
  int refusals = 0, runs = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Prng prng(seed);
    const int size = 1 + static_cast<int>(prng.Below(5));
    Coordinator coordinator(CoordinatorConfig(), SpecOf(size));
    std::vector<RandomRank> ranks(size);
    std::map<std::string, std::vector<bool>> alike;  // by use
    for (uint64_t step = 1 + prng.Below(6); step > 0; --step) {
      // "a" and "b" are mostly a group of all ranks, sometimes not of every rank; "c" is alone.
      std::vector<bool> grouped(size, prng.Chance(1, 2));
      for (Rank rank = 0; rank < size; ++rank) {
        if (prng.Chance(1, 10)) grouped[rank] = !grouped[rank];
      }
      for (const std::string name : {"a", "b", "c"}) {
        bool same = true;
        std::vector<int64_t> shapes(size, 3);
        for (Rank rank = 0; rank < size; ++rank) {
          if (prng.Chance(1, 10)) shapes[rank] = 4;
          same = same && shapes[rank] == shapes[0] && (name == "c" || grouped[rank] == grouped[0]);
        }
        for (Rank rank = 0; rank < size; ++rank) {
          const bool in_group = name != "c" && grouped[rank];
          ranks[rank].Plan({name, {shapes[rank]}, in_group ? 5u : 0u, in_group ? 2u : 1u});
        }
        alike[name].push_back(same);
      }
    }
    uint64_t sequence = 0;
    int idle = 0;
    while (!absl::c_all_of(ranks, [](const RandomRank& rank) { return rank.done(); })) {
      ASSERT_LT(++idle, 1000) << "seed " << seed << ": somebody waits for ever";
      const auto rank = static_cast<Rank>(prng.Below(size));
      coordinator.Add(kStart, rank, ranks[rank].Next(prng));
      if (prng.Chance(1, 3)) continue;
      const ResponseList list = coordinator.Take();
      ASSERT_EQ(list.closed, absl::StatusCode::kOk) << list.closed_reason;
      for (const Response& response : list.responses) {
        EXPECT_EQ(response.sequence, ++sequence);
        for (Rank hears = 0; hears < size; ++hears) ranks[hears].Hear(response, hears);
      }
      if (!list.empty()) idle = 0;
    }
    for (const auto& [name, uses] : alike) {
      for (const RandomRank& rank : ranks) EXPECT_EQ(rank.answers.at(name), ranks[0].answers.at(name)) << seed;
      for (size_t use = 0; use < uses.size(); ++use) {
        EXPECT_EQ(ranks[0].answers.at(name)[use].empty(), uses[use]) << "seed " << seed << " " << name << " " << use;
        ++(uses[use] ? runs : refusals);
      }
    }
    EXPECT_TRUE(coordinator.NextDeadline().is_infinite()) << "seed " << seed << ": something is left over";
  }
  EXPECT_GT(refusals, 1000);
  EXPECT_GT(runs, 1000);
}

}  // namespace
}  // namespace farandole
