#include "collectives/engine/coordinator.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "collectives/core/types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr Instant kStart = Instant::FromNanos(1);

GroupSpec SpecOf(int size) {
  GroupSpec spec;
  spec.generation = Generation(1);
  for (int rank = 0; rank < size; ++rank)
    spec.members.push_back({std::string(1, static_cast<char>('a' + rank)), {}, ""});
  return spec;
}

CoordinatorConfig Config() {
  CoordinatorConfig config;
  config.stall_warning = absl::Seconds(10);
  return config;
}

Announcement Asks(std::string name, std::vector<int64_t> shape = {3}) {
  Announcement asked;
  asked.name = std::move(name);
  asked.shape = std::move(shape);
  return asked;
}

Announcement InGroup(Announcement asked, uint64_t group, uint32_t size) {
  asked.group = group;
  asked.group_size = size;
  return asked;
}

void Add(Coordinator& coordinator, Rank rank, Announcement asked) {
  RequestList list;
  list.requests.push_back(std::move(asked));
  coordinator.Add(kStart, rank, std::move(list));
}

std::vector<std::string> NamesOf(const ResponseList& list) {
  std::vector<std::string> names;
  for (const Response& response : list.responses)
    names.insert(names.end(), response.names.begin(), response.names.end());
  return names;
}

TEST(Coordinator, ANameIsReadyWhenTheLastRankHasAskedForIt) {
  Coordinator coordinator(Config(), SpecOf(3));
  Add(coordinator, 1, Asks("x"));
  Add(coordinator, 0, Asks("x"));
  EXPECT_TRUE(coordinator.Take().empty());
  Add(coordinator, 2, Asks("x"));
  EXPECT_THAT(NamesOf(coordinator.Take()), ElementsAre("x"));
  EXPECT_TRUE(coordinator.Take().empty());
}

// Any interleaving of the ranks' requests gives each name once, numbered without a gap, and the same steps again and
// again.
TEST(Coordinator, AnyInterleavingSequencesEveryNameOnce) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Prng prng(seed);
    const int size = 1 + static_cast<int>(prng.Below(5));
    const int names = 1 + static_cast<int>(prng.Below(12));
    CoordinatorConfig config = Config();
    config.fusion_threshold_bytes = static_cast<int64_t>(prng.Below(100));
    Coordinator coordinator(config, SpecOf(size));
    uint64_t sequence = 0;
    for (int step = 0; step < 3; ++step) {
      std::vector<std::pair<Rank, int>> asks;
      for (Rank rank = 0; rank < size; ++rank) {
        for (int name = 0; name < names; ++name) asks.emplace_back(rank, name);
      }
      for (size_t i = asks.size(); i > 1; --i) std::swap(asks[i - 1], asks[prng.Below(i)]);
      std::vector<std::string> seen;
      for (const auto& [rank, name] : asks) {
        Add(coordinator, rank, Asks("t" + std::to_string(name), {name}));
        if (prng.Chance(1, 3)) continue;
        const ResponseList list = coordinator.Take();
        for (const Response& response : list.responses) EXPECT_EQ(response.sequence, ++sequence);
        for (const std::string& taken : NamesOf(list)) seen.push_back(taken);
      }
      const ResponseList rest = coordinator.Take();
      for (const Response& response : rest.responses) EXPECT_EQ(response.sequence, ++sequence);
      for (const std::string& taken : NamesOf(rest)) seen.push_back(taken);
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(static_cast<int>(seen.size()), names) << "seed " << seed;
      EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end()) << "seed " << seed;
    }
  }
}

// One mismatch each; the words are the original's, then tensor, ranks and both descriptions. Afterwards the name works.
struct Difference {
  std::string words;
  Announcement theirs;
  std::string description;
};

TEST(Coordinator, ADisagreementIsOneTextForAllAndTheNameStartsClean) {
  Announcement broadcast = Asks("x");
  broadcast.kind = OperationKind::kBroadcast;
  Announcement doubles = Asks("x");
  doubles.dtype = DType::kFloat64;
  Announcement maximum = Asks("x");
  maximum.op = ReduceOp::kMax;
  Announcement scaled = Asks("x");
  scaled.postscale = 0.5;
  const std::vector<Difference> cases = {
      {"Mismatched data types", doubles, "float64 [3]"},
      {"Mismatched operations", broadcast, "BROADCAST of float32 [3] from rank 0"},
      {"Mismatched ALLREDUCE tensor shapes", Asks("x", {3, 1}), "float32 [3, 1]"},
      {"Mismatched reduction operation", maximum, "(max)"},
      {"Mismatched prescale and/or postscale factors", scaled, "scaled by 1 before and 0.5 after"},
      {"Mismatched groups", InGroup(Asks("x"), 7, 1), "one of a group of 1"},
  };
  for (const Difference& disagreement : cases) {
    Coordinator coordinator(Config(), SpecOf(3));
    Add(coordinator, 0, Asks("x"));
    Add(coordinator, 1, Asks("x"));
    Add(coordinator, 2, disagreement.theirs);
    const ResponseList list = coordinator.Take();
    ASSERT_THAT(list.responses, SizeIs(1));
    EXPECT_THAT(list.responses[0].refusal,
                AllOf(StartsWith(disagreement.words), HasSubstr("tensor x"), HasSubstr("ranks 0, 1 ask for"),
                      HasSubstr("float32 [3] (sum)"), HasSubstr("rank 2 on host c asks for"),
                      HasSubstr(disagreement.description)));
    for (Rank rank : {2, 0, 1}) Add(coordinator, rank, Asks("x"));
    const ResponseList next = coordinator.Take();
    ASSERT_THAT(next.responses, SizeIs(1));
    EXPECT_EQ(next.responses[0].refusal, "");
  }
}

TEST(Coordinator, BroadcastsAgreeOnTheirRoot) {
  Coordinator coordinator(Config(), SpecOf(2));
  Announcement asked = Asks("x");
  asked.kind = OperationKind::kBroadcast;
  Add(coordinator, 0, asked);
  asked.root = 1;
  Add(coordinator, 1, asked);
  EXPECT_THAT(coordinator.Take().responses[0].refusal,
              AllOf(StartsWith("Mismatched BROADCAST root ranks"), HasSubstr("from rank 0"), HasSubstr("from rank 1")));
}

TEST(Coordinator, GatheredTensorsMayDifferInTheirFirstDimensionOnly) {
  Coordinator coordinator(Config(), SpecOf(2));
  const auto gather = [&](std::vector<int64_t> first, std::vector<int64_t> second) {
    Announcement asked = Asks("x", std::move(first));
    asked.kind = OperationKind::kAllGather;
    Add(coordinator, 0, asked);
    asked.shape = std::move(second);
    Add(coordinator, 1, asked);
    return coordinator.Take().responses[0];
  };
  EXPECT_THAT(gather({0, 5}, {4, 5}).first_dims, ElementsAre(0, 4));
  EXPECT_THAT(gather({1, 5}, {1, 6}).refusal, StartsWith("Mismatched ALLGATHER tensor shapes"));
  EXPECT_THAT(gather({1, 5}, {1}).refusal, StartsWith("Mismatched ALLGATHER tensor shapes"));
  EXPECT_THAT(gather({}, {}).refusal,
              AllOf(StartsWith("Process-set rank zero tried to ALLGATHER a rank-zero tensor"),
                    HasSubstr("rank 0 on host a asks for ALLGATHER of float32 []"), HasSubstr("reshape(1)")));
}

TEST(Coordinator, AResultThatNoMemoryHoldsIsRefused) {
  Coordinator coordinator(Config(), SpecOf(2));
  Announcement asked = Asks("x", {int64_t{1} << 62});
  asked.kind = OperationKind::kAllGather;
  asked.dtype = DType::kUint8;
  for (Rank rank : {0, 1}) Add(coordinator, rank, asked);
  const ResponseList list = coordinator.Take();
  ASSERT_THAT(list.responses, SizeIs(1));
  EXPECT_THAT(list.responses[0].refusal, HasSubstr("larger than any memory"));
  EXPECT_THAT(list.responses[0].refused, ElementsAre(0, 1));
}

// Those who have asked do not wait for a rank that may never come; it is told the same when it comes, and what the
// others ask for meanwhile is the next use.
TEST(Coordinator, ARefusalIsToldAtOnceAndToLateRanksWhenTheyAsk) {
  Coordinator coordinator(Config(), SpecOf(4));
  Add(coordinator, 0, Asks("x"));
  EXPECT_FALSE(coordinator.has_news());
  Add(coordinator, 2, Asks("x", {4}));
  const ResponseList first = coordinator.Take();
  ASSERT_THAT(first.responses, SizeIs(1));
  EXPECT_THAT(first.responses[0].refusal, AllOf(HasSubstr("rank 0 on host a asks"), HasSubstr("rank 2 on host c")));
  EXPECT_THAT(first.responses[0].refused, ElementsAre(0, 2));

  Add(coordinator, 0, Asks("x"));  // the next use
  Add(coordinator, 3, Asks("x"));  // late
  const ResponseList second = coordinator.Take();
  ASSERT_THAT(second.responses, SizeIs(1));
  EXPECT_EQ(second.responses[0].refusal, first.responses[0].refusal);
  EXPECT_THAT(second.responses[0].refused, ElementsAre(3));

  Add(coordinator, 2, Asks("x"));
  Add(coordinator, 3, Asks("x"));
  EXPECT_FALSE(coordinator.has_news());
  Add(coordinator, 1, Asks("x"));  // late
  EXPECT_THAT(coordinator.Take().responses[0].refused, ElementsAre(1));
  Add(coordinator, 1, Asks("x"));
  const ResponseList last = coordinator.Take();
  ASSERT_THAT(last.responses, SizeIs(1));
  EXPECT_EQ(last.responses[0].refusal, "");
}

TEST(Coordinator, ARankThatAsksTwiceIsBroken) {
  for (const bool refused : {false, true}) {
    Coordinator coordinator(Config(), SpecOf(3));
    Add(coordinator, 1, Asks("x"));
    if (refused) {
      Add(coordinator, 2, Asks("x", {4}));
      Add(coordinator, 1, Asks("x"));
      EXPECT_FALSE(coordinator.closed());
    }
    Add(coordinator, 1, Asks("x"));
    const ResponseList list = coordinator.Take();
    EXPECT_EQ(list.closed, absl::StatusCode::kInternal);
    EXPECT_THAT(list.closed_reason, AllOf(HasSubstr("rank 1 on host b"), HasSubstr("x")));
  }
}

TEST(Coordinator, AGroupIsReadyWhenAllOfItIs) {
  Coordinator coordinator(Config(), SpecOf(2));
  for (int step = 0; step < 2; ++step) {
    for (const char* name : {"a", "b"}) Add(coordinator, 0, InGroup(Asks(name), 9, 2));
    Add(coordinator, 1, InGroup(Asks("b"), 9, 2));
    EXPECT_TRUE(coordinator.Take().empty());
    Add(coordinator, 1, InGroup(Asks("a"), 9, 2));
    EXPECT_THAT(NamesOf(coordinator.Take()), ElementsAre("b", "a"));
  }
}

TEST(Coordinator, ARefusedMemberDoesNotHoldItsGroupBack) {
  Coordinator coordinator(Config(), SpecOf(2));
  for (const char* name : {"a", "b"}) Add(coordinator, 0, InGroup(Asks(name), 9, 2));
  Add(coordinator, 1, InGroup(Asks("a", {4}), 9, 2));
  Add(coordinator, 1, InGroup(Asks("b"), 9, 2));
  EXPECT_THAT(NamesOf(coordinator.Take()), ElementsAre("a", "b"));
}

TEST(Coordinator, ARankThatLeavesClosesTheGroupAfterWhatWasReady) {
  Coordinator coordinator(Config(), SpecOf(2));
  Add(coordinator, 0, Asks("done"));
  Add(coordinator, 1, Asks("done"));
  Add(coordinator, 0, Asks("half"));
  RequestList leaving;
  leaving.leaving = true;
  coordinator.Add(kStart, 1, leaving);
  const ResponseList list = coordinator.Take();
  EXPECT_THAT(NamesOf(list), ElementsAre("done"));
  EXPECT_EQ(list.closed, absl::StatusCode::kAborted);
  EXPECT_THAT(list.closed_reason, AllOf(StartsWith("Horovod has been shut down"), HasSubstr("rank 1 on host b")));
  Add(coordinator, 1, Asks("half"));
  EXPECT_TRUE(coordinator.Take().empty());
}

TEST(Coordinator, ALostRankIsNamed) {
  Coordinator coordinator(Config(), SpecOf(3));
  coordinator.Lost(2, "connection reset");
  const ResponseList list = coordinator.Take();
  EXPECT_EQ(list.closed, absl::StatusCode::kUnavailable);
  EXPECT_THAT(list.closed_reason, AllOf(HasSubstr("rank 2 on host c"), HasSubstr("connection reset")));
}

TEST(Coordinator, StallsAreOneLineWithGrowingGapsAndNameWhoIsMissing) {
  Coordinator coordinator(Config(), SpecOf(4));
  for (const char* name : {"x", "y"}) {
    Add(coordinator, 0, Asks(name));
    Add(coordinator, 2, Asks(name));
  }
  EXPECT_EQ(coordinator.NextDeadline(), kStart + absl::Seconds(10));
  EXPECT_THAT(coordinator.Stalls(kStart + absl::Seconds(9)), IsEmpty());
  EXPECT_THAT(
      coordinator.Stalls(kStart + absl::Seconds(10)),
      ElementsAre(AllOf(HasSubstr("2 operations"), HasSubstr("rank 1 on host b, rank 3 on host d"), HasSubstr("10s"))));
  EXPECT_EQ(coordinator.NextDeadline(), kStart + absl::Seconds(20));
  EXPECT_THAT(coordinator.Stalls(kStart + absl::Seconds(20)), SizeIs(1));
  EXPECT_EQ(coordinator.NextDeadline(), kStart + absl::Seconds(40));
}

TEST(Coordinator, AStallThatLastsTooLongClosesTheGroupAndNamesWhoIsMissing) {
  CoordinatorConfig config = Config();
  config.stall_shutdown = absl::Seconds(25);
  Coordinator coordinator(config, SpecOf(3));
  Add(coordinator, 0, Asks("x"));
  EXPECT_THAT(coordinator.Stalls(kStart + absl::Seconds(10)), SizeIs(1));
  EXPECT_EQ(coordinator.NextDeadline(), kStart + absl::Seconds(20));
  EXPECT_THAT(coordinator.Stalls(kStart + absl::Seconds(20)), SizeIs(1));
  EXPECT_EQ(coordinator.NextDeadline(), kStart + absl::Seconds(25)) << "not after the limit";
  EXPECT_THAT(coordinator.Stalls(kStart + absl::Seconds(25)), IsEmpty());
  const ResponseList last = coordinator.Take();
  EXPECT_EQ(last.closed, absl::StatusCode::kAborted);
  EXPECT_THAT(last.closed_reason, AllOf(HasSubstr("operation x"), HasSubstr("rank 1 on host b, rank 2 on host c")));
}

TEST(Coordinator, WhatBecomesReadyIsCollectedForACycleUnlessSomethingIsWrong) {
  CoordinatorConfig config = Config();
  config.cycle_time = absl::Milliseconds(5);
  Coordinator coordinator(config, SpecOf(1));
  Add(coordinator, 0, Asks("x"));
  EXPECT_TRUE(coordinator.has_news());
  EXPECT_EQ(coordinator.TakeAt(), kStart + absl::Milliseconds(5));
  Add(coordinator, 0, Asks("y"));
  EXPECT_EQ(coordinator.TakeAt(), kStart + absl::Milliseconds(5)) << "counted from the first";
  coordinator.Lost(0, "gone");
  EXPECT_LE(coordinator.TakeAt(), kStart);
}

TEST(Coordinator, WhoHasJoinedIsNotWaitedForUntilAllHave) {
  Announcement join = Asks("join", {});
  join.kind = OperationKind::kJoin;
  Coordinator coordinator(Config(), SpecOf(3));
  Add(coordinator, 0, Asks("x"));
  Add(coordinator, 2, Asks("x"));
  Add(coordinator, 1, join);
  ResponseList list = coordinator.Take();
  ASSERT_THAT(NamesOf(list), ElementsAre("x"));
  EXPECT_THAT(list.responses[0].joined, ElementsAre(1));
  EXPECT_THAT(list.responses[0].shapes, ElementsAre(std::vector<int64_t>{3}));
  Add(coordinator, 2, join);
  Add(coordinator, 0, Asks("y"));
  EXPECT_THAT(NamesOf(coordinator.Take()), ElementsAre("y"));
  Add(coordinator, 0, join);
  list = coordinator.Take();
  ASSERT_THAT(NamesOf(list), ElementsAre("join"));
  EXPECT_EQ(list.responses[0].root, 0) << "who joined last";
  Add(coordinator, 0, Asks("z"));
  EXPECT_TRUE(coordinator.Take().empty()) << "all are there again";
}

TEST(Coordinator, NobodyWaitsForTheLateRanksOfARefusedName) {
  Coordinator coordinator(Config(), SpecOf(3));
  Add(coordinator, 0, Asks("x"));
  Add(coordinator, 1, Asks("x", {4}));
  EXPECT_THAT(coordinator.Stalls(kStart + absl::Seconds(10)), IsEmpty());
  EXPECT_TRUE(coordinator.NextDeadline().is_infinite());
  RequestList again;
  again.requests.push_back(Asks("x"));
  coordinator.Add(kStart + absl::Seconds(20), 1, again);
  EXPECT_EQ(coordinator.NextDeadline(), kStart + absl::Seconds(30));
  EXPECT_THAT(coordinator.Stalls(kStart + absl::Seconds(30)),
              ElementsAre(AllOf(HasSubstr("the operation x"), HasSubstr("waits for rank 2 on host c"))));
}

TEST(Coordinator, ALimitOfNothingDoesNotSpin) {
  CoordinatorConfig config = Config();
  config.stall_warning = absl::ZeroDuration();
  Coordinator coordinator(config, SpecOf(2));
  Add(coordinator, 0, Asks("x"));
  EXPECT_THAT(coordinator.Stalls(kStart), SizeIs(1));
  EXPECT_EQ(coordinator.NextDeadline(), kStart + absl::Seconds(1));
}

TEST(Coordinator, WithNothingLeftThereIsNoDeadline) {
  Coordinator coordinator(Config(), SpecOf(2));
  EXPECT_TRUE(coordinator.NextDeadline().is_infinite());
  for (Rank rank : {0, 1}) Add(coordinator, rank, Asks("x"));
  EXPECT_TRUE(coordinator.NextDeadline().is_infinite());
  CoordinatorConfig never = Config();
  never.stall_warning = absl::InfiniteDuration();
  Coordinator patient(never, SpecOf(2));
  Add(patient, 0, Asks("x"));
  EXPECT_TRUE(patient.NextDeadline().is_infinite());

  // What is over leaves nothing behind that would wake anybody early.
  RequestList later;
  later.requests.push_back(Asks("y"));
  coordinator.Add(kStart + absl::Seconds(5), 0, later);
  EXPECT_EQ(coordinator.NextDeadline(), kStart + absl::Seconds(15));
}

}  // namespace
}  // namespace farandole
