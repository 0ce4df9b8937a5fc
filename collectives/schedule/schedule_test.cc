// The schedules are run symbolically: a segment's value is the multiset of ranks whose contribution is in it.
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "collectives/schedule/broadcast_schedule.h"
#include "collectives/schedule/exchange_schedule.h"
#include "collectives/schedule/halving_schedule.h"
#include "collectives/schedule/ring_schedule.h"
#include "collectives/schedule/segment.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

constexpr int kSizeMax = 64;

// contributions[r]: how often rank r's own part is in.
using Contributions = std::vector<int>;

Contributions Only(int size, Rank rank) {
  Contributions value(size, 0);
  value[rank] = 1;
  return value;
}

Contributions Sum(Contributions a, const Contributions& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// at[rank][segment]
using Memory = std::vector<std::vector<Contributions>>;

// One step on all ranks at once: what each sends is read before anything is written.
template <typename StepOf, typename Combine>
void RunStep(int size, StepOf step_of, Combine combine, Memory& at) {
  const Memory before = at;
  for (Rank rank = 0; rank < size; ++rank) {
    const Rank next = RingNext(size, rank);
    ASSERT_EQ(step_of(rank).out, step_of(next).in)
        << "what rank " << rank << " sends is not what " << next << " expects";
    const int segment = step_of(rank).out;
    at[next][segment] = combine(before[next][segment], before[rank][segment]);
  }
}

TEST(RingSchedule, ReducesAndDeliversEachElementExactlyOnceForEverySize) {
  for (int size = 1; size <= kSizeMax; ++size) {
    SCOPED_TRACE(size);
    Memory at(size);
    for (Rank rank = 0; rank < size; ++rank) at[rank].assign(size, Only(size, rank));
    for (int step = 0; step < RingSteps(size); ++step) {
      RunStep(
          size, [&](Rank rank) { return RingReduceScatterStep(size, rank, step); }, Sum, at);
    }
    const Contributions all(size, 1);
    for (Rank rank = 0; rank < size; ++rank) {
      ASSERT_EQ(at[rank][RingOwnedSegment(size, rank)], all) << "rank " << rank;
    }
    for (int step = 0; step < RingSteps(size); ++step) {
      RunStep(
          size, [&](Rank rank) { return RingGatherOwnedStep(size, rank, step); },
          [](const Contributions&, const Contributions& incoming) { return incoming; }, at);
    }
    for (Rank rank = 0; rank < size; ++rank) ASSERT_EQ(at[rank], std::vector<Contributions>(size, all));
  }
}

TEST(RingSchedule, EachRankCombinesEachSegmentButTheOneItStartsWithOnce) {
  // So a tensor is read from the input and written to the output without a copy of it (transport_communicator.cc).
  for (int size = 1; size <= kSizeMax; ++size) {
    for (Rank rank = 0; rank < size; ++rank) {
      std::set<int> combined;
      for (int step = 0; step < RingSteps(size); ++step) {
        const RingStep now = RingReduceScatterStep(size, rank, step);
        EXPECT_TRUE(now.out == rank || combined.count(now.out)) << "sent before it was combined";
        EXPECT_TRUE(combined.insert(now.in).second);
      }
      EXPECT_EQ(combined.count(rank), 0u);
      EXPECT_EQ(static_cast<int>(combined.size()), size - 1);
    }
  }
}

TEST(RingSchedule, AllGatherBringsEveryBlockToEveryRank) {
  for (int size = 1; size <= kSizeMax; ++size) {
    SCOPED_TRACE(size);
    Memory at(size, std::vector<Contributions>(size));
    for (Rank rank = 0; rank < size; ++rank) at[rank][rank] = Only(size, rank);
    for (int step = 0; step < RingSteps(size); ++step) {
      RunStep(
          size, [&](Rank rank) { return RingAllGatherStep(size, rank, step); },
          [](const Contributions& own, const Contributions& incoming) {
            EXPECT_TRUE(own.empty()) << "a block came twice";
            return incoming;
          },
          at);
    }
    for (Rank rank = 0; rank < size; ++rank) {
      for (int block = 0; block < size; ++block) ASSERT_EQ(at[rank][block], Only(size, block));
    }
  }
}

TEST(ExchangeSchedule, BringsEveryBlockToEveryRankInLogarithmicSteps) {
  for (int size = 1; size <= kSizeMax; ++size) {
    SCOPED_TRACE(size);
    std::vector<std::vector<int>> at(size);  // the blocks of each rank, in the order held
    for (Rank rank = 0; rank < size; ++rank) at[rank] = {rank};
    ASSERT_GE(1 << ExchangeSteps(size), size);
    ASSERT_LT(1 << ExchangeSteps(size), 2 * size);
    for (int step = 0; step < ExchangeSteps(size); ++step) {
      const auto before = at;
      for (Rank rank = 0; rank < size; ++rank) {
        const ExchangeStep now = ExchangeStepOf(size, rank, step);
        const ExchangeStep peer = ExchangeStepOf(size, now.from, step);
        ASSERT_EQ(peer.to, rank);
        ASSERT_EQ(peer.blocks, now.blocks);
        ASSERT_EQ(static_cast<int>(before[rank].size()), now.have);
        at[rank].insert(at[rank].end(), before[now.from].begin(), before[now.from].begin() + now.blocks);
      }
    }
    for (Rank rank = 0; rank < size; ++rank) {
      std::vector<int> expected(size);
      for (int i = 0; i < size; ++i) expected[i] = (rank + i) % size;
      ASSERT_EQ(at[rank], expected);
    }
  }
}

// Folds, halves at these distances in turn, doubles back and unfolds. A "segment" of `at` is an element here.
void RunHalving(int size, const std::vector<int>& distances, Memory& at) {
  const int ranks = HalvingRanks(size);
  const int count = static_cast<int>(at[0].size());
  for (Rank rank = ranks; rank < size; ++rank) {
    for (int i = 0; i < count; ++i) at[rank - ranks][i] = Sum(at[rank - ranks][i], at[rank][i]);
  }
  std::vector<std::vector<HalvingStep>> steps(ranks);
  for (const int distance : distances) {
    const Memory before = at;
    std::vector<HalvingStep> now;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Segment stretch = steps[rank].empty() ? Segment{0, count} : steps[rank].back().kept;
      now.push_back(HalvingStepOf(rank, distance, stretch));
      ASSERT_EQ(now[rank].kept.size() + now[rank].given.size(), stretch.size());
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      const HalvingStep& peer = now[now[rank].peer];
      ASSERT_EQ(peer.peer, rank);
      ASSERT_EQ(peer.given, now[rank].kept) << "what " << now[rank].peer << " gives is not what " << rank << " keeps";
      for (int64_t i = now[rank].kept.begin; i < now[rank].kept.end; ++i) {
        at[rank][i] = Sum(before[rank][i], before[now[rank].peer][i]);
      }
      steps[rank].push_back(now[rank]);
    }
  }
  for (size_t step = distances.size(); step-- > 0;) {
    const Memory before = at;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const HalvingStep& now = steps[rank][step];
      for (int64_t i = now.given.begin; i < now.given.end; ++i) at[rank][i] = before[now.peer][i];
    }
  }
  for (Rank rank = ranks; rank < size; ++rank) at[rank] = at[rank - ranks];
}

std::vector<int> SizesToHalve() {
  std::vector<int> sizes(kSizeMax);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), {128, 256});
  return sizes;
}

TEST(HalvingSchedule, ReducesAndDeliversEachElementExactlyOnceFarFirstOrNearFirst) {
  for (const int size : SizesToHalve()) {
    SCOPED_TRACE(size);
    std::vector<int> near_first;
    for (int distance = 1; distance < HalvingRanks(size); distance *= 2) near_first.push_back(distance);
    const std::vector<int> far_first(near_first.rbegin(), near_first.rend());
    for (const std::vector<int>& distances : {near_first, far_first}) {
      for (const int count : {1, 5}) {
        Memory at(size);
        for (Rank rank = 0; rank < size; ++rank) at[rank].assign(count, Only(size, rank));
        RunHalving(size, distances, at);
        ASSERT_EQ(at, Memory(size, std::vector<Contributions>(count, Contributions(size, 1))));
      }
    }
  }
}

TEST(HalvingSchedule, NearFirstTheRanksOfABlockShareOneVectorBetweenThem) {
  // What Adasum's sums of dots rest on: after distance d the 2 d ranks of an aligned block have it all, each its part.
  constexpr int kCount = 1000;
  for (int ranks = 2; ranks <= 256; ranks *= 2) {
    std::vector<Segment> held(ranks, Segment{0, kCount});
    for (int distance = 1; distance < ranks; distance *= 2) {
      for (Rank rank = 0; rank < ranks; ++rank) held[rank] = HalvingStepOf(rank, distance, held[rank]).kept;
      for (Rank first = 0; first < ranks; first += 2 * distance) {
        std::vector<int> owners(kCount, 0);
        for (Rank rank = first; rank < first + 2 * distance; ++rank) {
          for (int64_t i = held[rank].begin; i < held[rank].end; ++i) ++owners[i];
        }
        ASSERT_EQ(owners, std::vector<int>(kCount, 1)) << ranks << " ranks, distance " << distance;
      }
    }
  }
}

TEST(BroadcastSchedule, TheTreeReachesEveryRankOnceFromOneThatKnows) {
  for (int size = 1; size <= kSizeMax; ++size) {
    for (Rank root = 0; root < size; ++root) {
      std::vector<int> reached(size, 0);
      reached[root] = 1;
      for (int place = 0; place < size; ++place) {
        ASSERT_EQ(reached[RankOfPlace(size, place, root)], 1) << "place " << place << " sends before it knows";
        for (int child : BinomialChildren(size, place)) {
          EXPECT_EQ(BinomialParent(child), place);
          ++reached[RankOfPlace(size, child, root)];
        }
      }
      EXPECT_EQ(reached, std::vector<int>(size, 1)) << "size " << size << ", root " << root;
      EXPECT_EQ(PlaceFromRoot(size, root, root), 0);
    }
  }
}

TEST(Segment, DivideAnyCountWithoutGapsAndEvenly) {
  const int64_t counts[] = {0, 1, 2, 3, 63, 64, 65, 1000, (int64_t{1} << 40) + 7, std::numeric_limits<int64_t>::max()};
  for (int64_t count : counts) {
    for (int parts = 1; parts <= kSizeMax; ++parts) {
      int64_t end = 0;
      for (int i = 0; i < parts; ++i) {
        const Segment segment = SegmentOf(count, parts, i);
        ASSERT_EQ(segment.begin, end);
        ASSERT_GE(segment.size(), count / parts);
        ASSERT_LE(segment.size() - count / parts, 1);
        end = segment.end;
      }
      ASSERT_EQ(end, count);
    }
  }
}

TEST(Segment, ChunksCoverASegmentInOrderAndAreEmptyPastIt) {
  for (int64_t size : {0, 1, 7, 8, 9, 16, 100}) {
    const Segment segment{1000, 1000 + size};
    int64_t end = segment.begin;
    for (int64_t i = 0; i < ChunkCount(size, 8); ++i) {
      const Segment chunk = ChunkOf(segment, 8, i);
      ASSERT_EQ(chunk.begin, end);
      ASSERT_GT(chunk.size(), 0);
      ASSERT_LE(chunk.size(), 8);
      end = chunk.end;
    }
    EXPECT_EQ(end, segment.end);
    EXPECT_EQ(ChunkOf(segment, 8, ChunkCount(size, 8)).size(), 0);
    EXPECT_EQ(ChunkOf(segment, 8, ChunkCount(size, 8) + 5).size(), 0);
  }
}

}  // namespace
}  // namespace farandole
