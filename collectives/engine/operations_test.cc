// Each kind of operation through engines, and what a rank that has joined does in it.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/core/types.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/request.h"
#include "collectives/engine/testing/engine_world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Numbers = std::vector<int64_t>;

Request RequestOf(OperationKind kind, std::string name, const Numbers& values, std::vector<int64_t> shape) {
  Request request;
  request.kind = kind;
  request.name = std::move(name);
  request.dtype = DType::kInt64;
  request.shape = std::move(shape);
  request.input = values.data();
  return request;
}

Request JoinRequest() {
  Request request;
  request.kind = OperationKind::kJoin;
  request.name = "join.noname";
  return request;
}

Numbers Output(const Result& result) {
  const auto* const got = reinterpret_cast<const int64_t*>(result.output.data());
  return Numbers(got, got + result.output.size() / 8);
}

TEST(Operations, AllToAllSendsRowsAndTellsWhereTheyCameFrom) {
  World world(3);
  world.EveryRank([&](Rank rank) {
    // Rank r has rows 10 r, 10 r + 1, ...; r of them go to rank 0, one to rank 1, none to rank 2, and one stays over.
    Numbers rows(rank + 2);
    std::iota(rows.begin(), rows.end(), 10 * rank);
    Request request = RequestOf(OperationKind::kAllToAll, "a", rows, {rank + 2});
    request.splits = {rank, 1, 0};
    Result result;
    ASSERT_OK(Ask(world[rank], request, &result));
    if (rank == 0) {
      EXPECT_THAT(result.rows, ElementsAre(0, 1, 2));
      EXPECT_THAT(Output(result), ElementsAre(10, 20, 21));
    } else if (rank == 1) {
      EXPECT_THAT(result.rows, ElementsAre(1, 1, 1));
      EXPECT_THAT(Output(result), ElementsAre(0, 11, 22));
    } else {
      EXPECT_THAT(Output(result), IsEmpty());
    }
    // Evenly, in rows of two.
    Numbers even = {rank, rank, 10 + rank, 10 + rank, 20 + rank, 20 + rank};
    ASSERT_OK(Ask(world[rank], RequestOf(OperationKind::kAllToAll, "b", even, {3, 2}), &result));
    EXPECT_THAT(Output(result),
                ElementsAre(10 * rank, 10 * rank, 10 * rank + 1, 10 * rank + 1, 10 * rank + 2, 10 * rank + 2));
  });
  world.Shutdown();
}

TEST(Operations, ReduceScatterDividesRowsAndTheFirstRanksGetOneMore) {
  World world(3);
  world.EveryRank([&](Rank rank) {
    Numbers values = {0, 1, 2, 3, 4, 5, 6, 7};  // four rows of two
    for (int64_t& value : values) value += 100 * rank;
    Request request = RequestOf(OperationKind::kReduceScatter, "r", values, {4, 2});
    request.postscale = 2;
    Result result;
    ASSERT_OK(Ask(world[rank], request, &result));
    EXPECT_THAT(result.rows, ElementsAre(2, 1, 1));
    if (rank == 0) {
      EXPECT_THAT(Output(result), ElementsAre(600, 606, 612, 618));
    }
    if (rank == 2) {
      EXPECT_THAT(Output(result), ElementsAre(636, 642));
    }
    request.op = ReduceOp::kMax;
    request.postscale = 1;
    request.prescale = 2;
    ASSERT_OK(Ask(world[rank], request, &result));
    if (rank == 1) {
      EXPECT_THAT(Output(result), ElementsAre(408, 410));
    }
  });
  world.Shutdown();
}

TEST(Operations, SendAndReceiveTakeTwoRanksOnly) {
  World world(3);
  world.EveryRank([&](Rank rank) {
    Numbers values = {7, 8, 9};
    Request request = RequestOf(rank == 2 ? OperationKind::kSend : OperationKind::kReceive, "p", values, {3});
    request.root = rank == 2 ? 0 : 2;
    Numbers got(3);
    request.output = got.data();
    if (rank == 2) {
      EXPECT_OK(Ask(world[rank], request));
    }
    if (rank == 0) {
      EXPECT_OK(Ask(world[rank], request));
      EXPECT_THAT(got, ElementsAre(7, 8, 9));
    }
    Numbers one = {1};
    Request sum = RequestOf(OperationKind::kAllReduce, "s", one, {1});
    sum.output = one.data();
    EXPECT_OK(Ask(world[rank], sum));
    EXPECT_THAT(one, ElementsAre(3));
  });
  world.Shutdown();
}

TEST(Operations, TwoThatDoNotFitAreToldBoth) {
  World world(2);
  world.EveryRank([&](Rank rank) {
    Numbers values = {7, 8, 9};
    Request request = RequestOf(OperationKind::kSend, "p", values, {3});
    request.root = 1 - rank;
    EXPECT_THAT(Ask(world[rank], request),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("Mismatched operations"), HasSubstr("SEND of int64 [3] to rank 1"),
                               HasSubstr("SEND of int64 [3] to rank 0"))));
    request.name = "q";
    request.kind = rank == 0 ? OperationKind::kSend : OperationKind::kReceive;
    request.shape = {3 - rank};
    request.output = values.data();
    EXPECT_THAT(Ask(world[rank], request), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("shapes")));
    request.shape = {3};
    EXPECT_OK(Ask(world[rank], request));
  });
  world.Shutdown();
}

TEST(Operations, AdasumIsPerTensorEvenWhenFused) {
  World world(2);
  world.EveryRank([&](Rank rank) {
    // Parallel vectors: their average; orthogonal ones: their sum.
    std::vector<double> parallel = {1, 2}, orthogonal = {rank == 0 ? 3.0 : 0.0, rank == 0 ? 0.0 : 5.0};
    std::vector<Request> requests = {SumOf("a", parallel), SumOf("b", orthogonal)};
    for (Request& request : requests) request.op = ReduceOp::kAdasum;
    std::vector<Outcome> outcomes(2);
    ASSERT_OK(world[rank].Enqueue(std::move(requests), {outcomes[0].done(), outcomes[1].done()}));
    EXPECT_OK(outcomes[0].Wait());
    EXPECT_OK(outcomes[1].Wait());
    EXPECT_THAT(parallel, ElementsAre(1, 2));
    EXPECT_THAT(orthogonal, ElementsAre(3, 5));
  });
  EXPECT_EQ(world.collectives(0), 1) << "they were not fused";
  world.Shutdown();
}

TEST(Operations, WhatOneRankGetsWrongIsRefusedAtOnce) {
  World world(2);
  Numbers values(6);
  const auto refused = [&](Request request, const char* words) {
    request.output = values.data();
    EXPECT_THAT(Ask(world[0], request), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  };
  Request request = RequestOf(OperationKind::kAllToAll, "x", values, {3});
  refused(request, "3 rows cannot be divided evenly");
  request.splits = {3};
  refused(request, "1 splits for 2 ranks");
  request.splits = {2, 2};
  refused(request, "ask for 4 rows of 3");
  request.splits = {4, -1};
  refused(request, "below zero");
  request = RequestOf(OperationKind::kAllReduce, "x", values, {3});
  request.dtype = DType::kBool;
  request.op = ReduceOp::kAverage;
  refused(request, "no average of bool");
  request = RequestOf(OperationKind::kReduceScatter, "x", values, {3});
  request.op = ReduceOp::kAdasum;
  request.dtype = DType::kFloat64;
  refused(request, "no adasum of shares");
  request = RequestOf(OperationKind::kSend, "x", values, {3});
  refused(request, "rank 0 and itself");
  request.root = 2;
  refused(request, "no rank 2 to send to");
  world.Shutdown();
}

// Rank r takes part in r + 1 rounds of everything and then joins: the last rank is alone in the end.
TEST(Join, EveryOperationGoesOnAndTheLastOneIsTold) {
  constexpr int kSize = 3;
  for (const JoinDivisor divisor : {JoinDivisor::kAll, JoinDivisor::kActive}) {
    EngineConfig config;
    config.join_divisor = divisor;
    World world(kSize, config);
    world.EveryRank([&](Rank rank) {
      for (int epoch = 0; epoch < 2; ++epoch) {
        for (int round = 0; round <= rank; ++round) {
          const int active = kSize - round;  // ranks round, ..., kSize - 1
          int64_t sum = 0;
          for (Rank r = round; r < kSize; ++r) sum += r;
          std::vector<double> average = {static_cast<double>(rank)};
          Request request = SumOf("average", average);
          request.op = ReduceOp::kAverage;
          EXPECT_OK(Ask(world[rank], request));
          EXPECT_DOUBLE_EQ(average[0], static_cast<double>(sum) / (divisor == JoinDivisor::kAll ? kSize : active));

          Numbers value = {-5 - rank}, result(1);
          request = RequestOf(OperationKind::kAllReduce, "max", value, {1});
          request.op = ReduceOp::kMax;
          request.output = result.data();
          EXPECT_OK(Ask(world[rank], request));
          EXPECT_THAT(result, ElementsAre(-5 - round)) << "who has joined is not in a maximum";

          Result gathered;
          EXPECT_OK(Ask(world[rank], RequestOf(OperationKind::kAllGather, "gather", value, {1}), &gathered));
          EXPECT_EQ(static_cast<int>(Output(gathered).size()), active);

          Numbers rows(kSize, rank);
          Result exchanged;
          EXPECT_OK(Ask(world[rank], RequestOf(OperationKind::kAllToAll, "exchange", rows, {kSize}), &exchanged));
          EXPECT_EQ(static_cast<int>(Output(exchanged).size()), active);

          Result share;
          EXPECT_OK(Ask(world[rank], RequestOf(OperationKind::kReduceScatter, "share", rows, {kSize}), &share));
          EXPECT_THAT(Output(share), ElementsAre(sum));

          Numbers data = {rank};
          request = RequestOf(OperationKind::kBroadcast, "broadcast", data, {1});
          request.root = kSize - 1;
          request.output = data.data();
          EXPECT_OK(Ask(world[rank], request));
          EXPECT_THAT(data, ElementsAre(kSize - 1));

          Request barrier;
          barrier.kind = OperationKind::kBarrier;
          barrier.name = "barrier";
          EXPECT_OK(Ask(world[rank], barrier));
        }
        Result joined;
        EXPECT_OK(Ask(world[rank], JoinRequest(), &joined));
        EXPECT_EQ(joined.last_joined, kSize - 1);
      }
    });
    world.Shutdown();
  }
}

TEST(Join, ABroadcastFromWhoHasJoinedIsAnErrorForAllWhoAsk) {
  World world(3);
  world.EveryRank([&](Rank rank) {
    if (rank > 0) {
      Numbers data = {rank};
      Request request = RequestOf(OperationKind::kBroadcast, "b", data, {1});
      request.output = data.data();
      EXPECT_THAT(Ask(world[rank], request),
                  StatusIs(absl::StatusCode::kFailedPrecondition, AllOf(HasSubstr("rank 0"), HasSubstr("has joined"))));
    }
    EXPECT_OK(Ask(world[rank], JoinRequest()));
  });
  world.Shutdown();
}

}  // namespace
}  // namespace farandole
