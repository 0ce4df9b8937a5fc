#include "collectives/engine/engine.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/core/types.h"
#include "collectives/engine/request.h"
#include "collectives/engine/testing/engine_world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

TEST(Engine, RanksMayAskInAnyOrderFromSeveralThreads) {
  for (int size : {1, 2, 3, 5}) {
    World world(size);
    constexpr int kTensors = 40, kThreads = 3, kSteps = 5;
    world.EveryRank([&](Rank rank) {
      Prng prng(rank);
      for (int step = 0; step < kSteps; ++step) {
        std::vector<int> order(kTensors);
        for (int i = 0; i < kTensors; ++i) order[i] = i;
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[prng.Below(i)]);
        std::vector<std::vector<double>> values(kTensors);
        std::vector<Outcome> outcomes(kTensors);
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
          threads.emplace_back([&, t] {
            for (int i = t; i < kTensors; i += kThreads) {
              const int tensor = order[i];
              values[tensor].assign(tensor * 7, rank + tensor);
              EXPECT_OK(world[rank].Enqueue({SumOf("t" + std::to_string(tensor), values[tensor])},
                                            {outcomes[tensor].done()}));
            }
          });
        }
        for (std::thread& thread : threads) thread.join();
        for (int tensor = 0; tensor < kTensors; ++tensor) {
          EXPECT_OK(outcomes[tensor].Wait());
          const double expected = size * (size - 1) / 2 + size * tensor;
          EXPECT_EQ(values[tensor], std::vector<double>(tensor * 7, expected));
        }
      }
    });
    world.Shutdown();
  }
}

TEST(Engine, ScalesBeforeAndAfterAndAverages) {
  World world(4);
  world.EveryRank([&](Rank rank) {
    std::vector<double> in(5, rank), out(5, -1);
    Request request = SumOf("x", in);
    request.output = out.data();
    request.op = ReduceOp::kAverage;
    request.prescale = 2;
    request.postscale = 10;
    EXPECT_OK(Ask(world[rank], request));
    EXPECT_EQ(out, std::vector<double>(5, 10 * 2 * 1.5));
    EXPECT_EQ(in, std::vector<double>(5, rank));
  });
  world.Shutdown();
}

TEST(Engine, GathersUnevenRowsAndBroadcasts) {
  World world(3);
  world.EveryRank([&](Rank rank) {
    std::vector<int64_t> rows(rank * 2, rank);
    Request gather;
    gather.kind = OperationKind::kAllGather;
    gather.name = "g";
    gather.dtype = DType::kInt64;
    gather.shape = {rank, 2};
    gather.input = rows.data();
    Result result;
    EXPECT_OK(Ask(world[rank], gather, &result));
    EXPECT_EQ(result.rows, (std::vector<int64_t>{0, 1, 2}));
    const auto* got = reinterpret_cast<const int64_t*>(result.output.data());
    EXPECT_EQ(std::vector<int64_t>(got, got + result.output.size() / 8), (std::vector<int64_t>{1, 1, 2, 2, 2, 2}));

    std::vector<double> values(9, rank);
    Request broadcast = SumOf("b", values);
    broadcast.kind = OperationKind::kBroadcast;
    broadcast.root = 2;
    EXPECT_OK(Ask(world[rank], broadcast));
    EXPECT_EQ(values, std::vector<double>(9, 2));

    Request barrier;
    barrier.kind = OperationKind::kBarrier;
    barrier.name = "barrier";
    EXPECT_OK(Ask(world[rank], barrier));
  });
  world.Shutdown();
}

TEST(Engine, BadRequestsAreRefusedBeforeAnythingMoves) {
  World world(1);
  std::vector<double> values(3, 1);
  Request request = SumOf("x", values);
  request.kind = OperationKind::kBroadcast;
  request.root = 1;
  EXPECT_THAT(Ask(world[0], request), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 1")));
  request = SumOf("x", values);
  request.output = nullptr;
  EXPECT_THAT(Ask(world[0], request), StatusIs(absl::StatusCode::kInvalidArgument));
  request = SumOf("x", values);
  request.shape = {-1};
  EXPECT_THAT(Ask(world[0], request), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[-1]")));
  world.Shutdown();
}

TEST(Engine, ManySmallTensorsRunAsFewCollectives) {
  World world(2);
  constexpr int kTensors = 200;
  world.EveryRank([&](Rank rank) {
    std::vector<std::vector<double>> values(kTensors, std::vector<double>(10, 1));
    std::vector<Request> requests;
    std::vector<Engine::Done> done;
    std::vector<Outcome> outcomes(kTensors);
    for (int i = 0; i < kTensors; ++i) {
      requests.push_back(SumOf("t" + std::to_string(i), values[i]));
      done.push_back(outcomes[i].done());
    }
    EXPECT_OK(world[rank].Enqueue(std::move(requests), std::move(done)));
    for (int i = 0; i < kTensors; ++i) {
      EXPECT_OK(outcomes[i].Wait());
      EXPECT_EQ(values[i], std::vector<double>(10, 2));
    }
  });
  EXPECT_EQ(world.collectives(0), 1);
  EXPECT_EQ(world.collectives(1), 1);
  world.Shutdown();
}

TEST(Engine, ACompletionMayEnqueue) {
  World world(2);
  world.EveryRank([&](Rank rank) {
    std::vector<double> first(3, 1), second(3, 1);
    Outcome outcome;
    EXPECT_OK(world[rank].Enqueue({SumOf("first", first)}, {[&](absl::Status status, Result) {
                                    EXPECT_OK(status);
                                    EXPECT_OK(world[rank].Enqueue({SumOf("second", second)}, {outcome.done()}));
                                  }}));
    EXPECT_OK(outcome.Wait());
    EXPECT_EQ(second, std::vector<double>(3, 2));
  });
  world.Shutdown();
}

TEST(Engine, ANameThatWaitsIsRefusedAndItsGroupWithIt) {
  World world(2);
  std::vector<double> mine(3, 1), theirs(3, 1), other(3, 1);
  Outcome first, second;
  EXPECT_OK(world[0].Enqueue({SumOf("x", mine)}, {first.done()}));
  EXPECT_THAT(Ask(world[0], SumOf("x", other)), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("same name")));
  EXPECT_THAT(world[0].Enqueue({SumOf("y", other), SumOf("x", other)}, {second.done(), second.done()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x")));
  EXPECT_OK(Ask(world[1], SumOf("x", theirs)));
  EXPECT_OK(first.Wait());
  EXPECT_FALSE(second.ended()) << "nothing of a refused group is queued";
  world.EveryRank([&](Rank rank) {
    std::vector<double> values(3, 1);
    EXPECT_OK(Ask(world[rank], SumOf("y", values)));
    EXPECT_OK(Ask(world[rank], SumOf("x", values)));
    EXPECT_EQ(values, std::vector<double>(3, 4));
  });
  world.Shutdown();
}

// Groups of several types, whose members and whose order differ from rank to rank.
TEST(Engine, GroupsRunInAnyOrder) {
  for (int size : {1, 2, 4}) {
    World world(size);
    constexpr int kGroups = 6, kMembers = 5, kSteps = 4;
    world.EveryRank([&](Rank rank) {
      Prng prng(rank + 100);
      for (int step = 0; step < kSteps; ++step) {
        std::vector<std::vector<double>> values(kGroups * kMembers);
        std::vector<Outcome> outcomes(kGroups * kMembers);
        std::vector<int> order(kGroups);
        for (int g = 0; g < kGroups; ++g) order[g] = g;
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[prng.Below(i)]);
        for (int g : order) {
          std::vector<Request> requests;
          std::vector<Engine::Done> done;
          const int first = static_cast<int>(prng.Below(kMembers));
          for (int m = 0; m < kMembers; ++m) {
            const int i = g * kMembers + (first + m) % kMembers;
            values[i].assign(i + 1, rank);
            requests.push_back(SumOf("t" + std::to_string(i), values[i]));
            if (i % 3 == 0) requests.back().op = ReduceOp::kMax;
            done.push_back(outcomes[i].done());
          }
          EXPECT_OK(world[rank].Enqueue(std::move(requests), std::move(done)));
        }
        for (int i = 0; i < kGroups * kMembers; ++i) {
          EXPECT_OK(outcomes[i].Wait());
          const double expected = i % 3 == 0 ? size - 1 : size * (size - 1) / 2;
          EXPECT_EQ(values[i], std::vector<double>(i + 1, expected));
        }
      }
    });
    world.Shutdown();
  }
}

TEST(Engine, AGroupWaitsForItsLastMemberEverywhere) {
  World world(2);
  std::vector<double> a(3, 1), b(3, 1), c(3, 1);
  Outcome outcome_a, outcome_b, outcome_c;
  EXPECT_OK(world[0].Enqueue({SumOf("a", a), SumOf("b", b)}, {outcome_a.done(), outcome_b.done()}));
  world.EveryRank([&](Rank rank) {
    std::vector<double> values(3, 1);
    EXPECT_OK(Ask(world[rank], SumOf("other", values)));
  });
  EXPECT_FALSE(outcome_a.ended());
  std::vector<double> their_a(3, 1), their_b(3, 1);
  Outcome their_outcome_a, their_outcome_b;
  EXPECT_OK(
      world[1].Enqueue({SumOf("b", their_b), SumOf("a", their_a)}, {their_outcome_b.done(), their_outcome_a.done()}));
  for (Outcome* outcome : {&outcome_a, &outcome_b, &their_outcome_a, &their_outcome_b}) EXPECT_OK(outcome->Wait());
  EXPECT_EQ(world.collectives(0), 2) << "the other one, and the group as one";
  world.Shutdown();
}

TEST(Engine, EmptyTensorsAreFine) {
  World world(3);
  world.EveryRank([&](Rank rank) {
    Request request;
    request.name = "x";
    request.shape = {0, 4};
    EXPECT_OK(Ask(world[rank], request));
    request.kind = OperationKind::kBroadcast;
    EXPECT_OK(Ask(world[rank], request));
    request.kind = OperationKind::kAllGather;
    Result result;
    EXPECT_OK(Ask(world[rank], request, &result));
    EXPECT_TRUE(result.output.empty());
    EXPECT_EQ(result.rows, std::vector<int64_t>(3, 0));
  });
  world.Shutdown();
}

// Requests that both ranks enqueue one by one, each told to rank 0 before the next.
class OneByOne {
 public:
  OneByOne(World& world, int count)
      : world_(world), values_(2 * count, std::vector<double>(10, 1)), outcomes_(2 * count) {
    for (int i = 0; i < count; ++i) {
      for (Rank rank : {0, 1}) {
        const int said = world.log(rank).counts().said;
        EXPECT_OK(world[rank].Enqueue({SumOf("t" + std::to_string(i), values_[2 * i + rank])},
                                      {outcomes_[2 * i + rank].done()}));
        EXPECT_TRUE(world.log(rank).Await(
            [&](const auto& counts) { return counts.idle() && counts.said == said + (rank == 0 ? 0 : 1); }));
      }
    }
  }
  void ExpectSums() {
    for (size_t i = 0; i < values_.size(); ++i) {
      EXPECT_OK(outcomes_[i].Wait());
      EXPECT_EQ(values_[i], std::vector<double>(10, 2));
    }
    EXPECT_EQ(world_.collectives(0), world_.collectives(1));
  }

 private:
  World& world_;
  std::vector<std::vector<double>> values_;
  std::vector<Outcome> outcomes_;
};

// Rank 0 hears all that has come before it answers.
TEST(Engine, WhatComesTogetherIsFused) {
  World world(2);
  world.channels().Stall(1);
  OneByOne requests(world, 20);
  EXPECT_EQ(world.log(0).counts().heard, 0);
  world.channels().Resume(1);
  requests.ExpectSums();
  EXPECT_EQ(world.collectives(0), 1);
  world.Shutdown();
}

// One operation runs, one waits behind it; what becomes ready meanwhile is one more.
TEST(Engine, WhatBecomesReadyWhileDataMovesIsFused) {
  World world(2);
  std::vector<double> values[2] = {{1}, {1}};
  Outcome outcomes[2];
  world.gate(0).Shut();
  for (Rank rank : {0, 1}) {
    EXPECT_OK(world[rank].Enqueue({SumOf("first", values[rank])}, {outcomes[rank].done()}));
  }
  ASSERT_TRUE(world.gate(0).AwaitArrivals(1));
  OneByOne requests(world, 20);
  ASSERT_TRUE(world.log(0).Await([](const auto& counts) { return counts.heard == 21 && counts.idle(); }));
  world.gate(0).Open();
  for (Outcome& outcome : outcomes) EXPECT_OK(outcome.Wait());
  requests.ExpectSums();
  EXPECT_EQ(world.collectives(0), 3);
  world.Shutdown();
}

TEST(Engine, OutputChangesOnlyWhenItsOperationHasFinished) {
  World world(2);
  std::vector<double> in[2] = {{1, 2}, {3, 4}}, out[2] = {{-1, -1}, {-1, -1}};
  Outcome outcomes[2];
  world.gate(0).Shut();
  for (Rank rank : {0, 1}) {
    Request request = SumOf("x", in[rank]);
    request.output = out[rank].data();
    EXPECT_OK(world[rank].Enqueue({request}, {outcomes[rank].done()}));
  }
  ASSERT_TRUE(world.gate(0).AwaitArrivals(1));
  EXPECT_EQ(out[0], (std::vector<double>{-1, -1}));
  world.gate(0).Open();
  for (Rank rank : {0, 1}) {
    EXPECT_OK(outcomes[rank].Wait());
    EXPECT_EQ(out[rank], (std::vector<double>{4, 6}));
  }
  EXPECT_EQ(in[0], (std::vector<double>{1, 2}));
  world.Shutdown();
}

// Every return from waiting has its cause, and with nothing to do the wait has no end: no timer, no polling.
TEST(Engine, AnIdleEngineSleeps) {
  for (int size : {1, 2, 3}) {
    World world(size);
    constexpr int kRequests = 5;
    for (int i = 0; i < kRequests; ++i) {
      world.EveryRank([&](Rank rank) {
        std::vector<double> values(3, 1);
        EXPECT_OK(Ask(world[rank], SumOf("x", values)));
      });
    }
    for (Rank rank = 0; rank < size; ++rank) {
      ASSERT_TRUE(
          world.log(rank).Await([](const auto& counts) { return counts.idle() && counts.deadline.is_infinite(); }));
      const ChannelLog::Counts counts = world.log(rank).counts();
      EXPECT_EQ(counts.wakes, kRequests) << "one for each request";
      EXPECT_EQ(counts.timeouts, 0);
      EXPECT_LE(counts.returns, counts.wakes + counts.messages);
      EXPECT_EQ(counts.said, rank == 0 ? 0 : kRequests);
    }
    world.Shutdown();
  }
}

}  // namespace
}  // namespace farandole
