#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/core/types.h"
#include "collectives/cpu/transport_communicator.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/request.h"
#include "collectives/engine/testing/engine_world.h"
#include "collectives/engine/wire.h"
#include "collectives/transport/control_channel.h"
#include "collectives/transport/inproc/inproc_control_channel.h"
#include "collectives/transport/inproc/inproc_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Each kind of disagreement: rank 2 asks for something else. All ranks get one text, nobody's memory changes, and the
// name works again.
TEST(EngineFailure, ADisagreementIsTheSameErrorOnAllRanksAndTheNameWorksAgain) {
  struct Case {
    std::string words;
    std::string usual, other;  // descriptions
    OperationKind kind;
    void (*change)(Request&);
  };
  const Case cases[] = {
      {"Mismatched data types", "ALLREDUCE of float64 [3] (sum)", "ALLREDUCE of int64 [3] (sum)",
       OperationKind::kAllReduce, [](Request& request) { request.dtype = DType::kInt64; }},
      {"Mismatched operations", "ALLREDUCE of float64 [3] (sum)", "BROADCAST of float64 [3] from rank 0",
       OperationKind::kAllReduce, [](Request& request) { request.kind = OperationKind::kBroadcast; }},
      {"Mismatched ALLREDUCE tensor shapes", "ALLREDUCE of float64 [3] (sum)", "ALLREDUCE of float64 [3, 1] (sum)",
       OperationKind::kAllReduce,
       [](Request& request) {
         request.shape = {3, 1};
       }},
      {"Mismatched reduction operation", "(sum)", "(average)", OperationKind::kAllReduce,
       [](Request& request) { request.op = ReduceOp::kAverage; }},
      {"Mismatched prescale and/or postscale factors", "(sum)", "(sum, scaled by 0.5 before and 1 after)",
       OperationKind::kAllReduce, [](Request& request) { request.prescale = 0.5; }},
      {"Mismatched BROADCAST tensor shapes", "BROADCAST of float64 [3] from", "BROADCAST of float64 [1, 3] from",
       OperationKind::kBroadcast,
       [](Request& request) {
         request.shape = {1, 3};
       }},
      {"Mismatched BROADCAST root ranks", "from rank 0", "from rank 1", OperationKind::kBroadcast,
       [](Request& request) { request.root = 1; }},
      {"Mismatched ALLGATHER tensor shapes", "ALLGATHER of float64 [3]", "ALLGATHER of float64 [1, 3]",
       OperationKind::kAllGather,
       [](Request& request) {
         request.shape = {1, 3};
       }},
  };
  World world(3);
  for (const Case& test : cases) {
    std::string messages[3];
    world.EveryRank([&](Rank rank) {
      std::vector<double> values(3, 1);
      Request request = SumOf("x", values);
      request.kind = test.kind;
      if (rank == 2) test.change(request);
      const absl::Status status = Ask(world[rank], request);
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   AllOf(StartsWith(test.words), HasSubstr("tensor x"), HasSubstr(test.usual),
                                         HasSubstr(test.other), HasSubstr("rank 2 on host c"))));
      messages[rank] = std::string(status.message());
      EXPECT_EQ(values, std::vector<double>(3, 1)) << "a refused tensor is as it was";
      EXPECT_OK(Ask(world[rank], SumOf("x", values)));
      EXPECT_EQ(values, std::vector<double>(3, 3));
    });
    EXPECT_EQ(messages[0], messages[1]);
    EXPECT_EQ(messages[0], messages[2]);
  }
  world.Shutdown();
}

TEST(EngineFailure, AScalarIsNotGatheredOnAnyRank) {
  World world(2);
  world.EveryRank([&](Rank rank) {
    double value = 1;
    Request request;
    request.kind = OperationKind::kAllGather;
    request.name = "x";
    request.dtype = DType::kFloat64;
    request.input = &value;
    EXPECT_THAT(Ask(world[rank], request),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("tried to ALLGATHER a rank-zero tensor")));
    std::vector<double> values(3, 1);
    EXPECT_OK(Ask(world[rank], SumOf("x", values)));
  });
  world.Shutdown();
}

// The rank that has not asked may never do so; those who disagree hear of it all the same.
TEST(EngineFailure, ADisagreementDoesNotWaitForTheOtherRanks) {
  World world(3);
  const auto ask = [&](Rank rank) {
    std::vector<double> values(rank == 0 ? 4 : 3, 1);
    return Ask(world[rank], SumOf("x", values));
  };
  world.EveryRank([&](Rank rank) {
    if (rank == 2) return;
    EXPECT_THAT(ask(rank), StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("Mismatched ALLREDUCE")));
  });
  EXPECT_THAT(ask(2), StatusIs(absl::StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("rank 0 on host a asks"), HasSubstr("rank 1 on host b asks"))));
  world.EveryRank([&](Rank rank) {
    std::vector<double> values(3, 1);
    EXPECT_OK(Ask(world[rank], SumOf("x", values)));
    EXPECT_EQ(values, std::vector<double>(3, 3));
  });
  world.Shutdown();
}

TEST(EngineFailure, ARankThatShutsDownFailsWhatCannotCompleteOnTheOthers) {
  World world(3);
  world.EveryRank([&](Rank rank) {
    std::vector<double> values(3, 1);
    EXPECT_OK(Ask(world[rank], SumOf("before", values)));
    if (rank == 1) return world[rank].Shutdown(Soon());
    EXPECT_THAT(Ask(world[rank], SumOf("after", values)),
                StatusIs(absl::StatusCode::kAborted,
                         AllOf(StartsWith("Horovod has been shut down"), HasSubstr("rank 1 on host b"))));
    EXPECT_THAT(Ask(world[rank], SumOf("later", values)), StatusIs(absl::StatusCode::kAborted));
  });
  world.Shutdown();
}

TEST(EngineFailure, WhatWasSequencedBeforeAShutdownIsStillRun) {
  for (int round = 0; round < 20; ++round) {
    World world(2);
    std::vector<std::vector<double>> values(2, std::vector<double>(10000, 1));
    std::vector<Outcome> outcomes(2);
    world.EveryRank(
        [&](Rank rank) { EXPECT_OK(world[rank].Enqueue({SumOf("x", values[rank])}, {outcomes[rank].done()})); });
    world.Shutdown();
    // Sequenced or not, both ranks see the same.
    const absl::Status first = outcomes[0].Wait(), second = outcomes[1].Wait();
    EXPECT_EQ(first.code(), second.code());
    EXPECT_EQ(values[0], values[1]);
    EXPECT_EQ(values[0][0], first.ok() ? 2 : 1);
  }
}

TEST(EngineFailure, ALostPeerIsNamedOnAllOthers) {
  for (Rank lost : {1, 2}) {
    World world(3);
    world.EveryRank([&](Rank rank) {
      std::vector<double> values(3, 1);
      EXPECT_OK(Ask(world[rank], SumOf("before", values)));
    });
    world.EveryRank([&](Rank rank) {
      if (rank == lost) return world.channels().CutLink(lost);
      std::vector<double> values(3, 1);
      EXPECT_THAT(Ask(world[rank], SumOf("x", values)),
                  StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank " + std::to_string(lost) + " on host")));
      EXPECT_THAT(Ask(world[rank], SumOf("y", values)), StatusIs(absl::StatusCode::kUnavailable));
    });
    world.Shutdown();
  }
}

TEST(EngineFailure, AnAbortEndsWhatWaitsPromptly) {
  World world(2);
  std::vector<double> values(3, 1);
  Outcome outcome;
  EXPECT_OK(world[0].Enqueue({SumOf("alone", values)}, {outcome.done()}));
  world[0].Abort("the agent is gone");
  EXPECT_THAT(outcome.Wait(), StatusIs(absl::StatusCode::kUnavailable, "the agent is gone"));
  EXPECT_THAT(Ask(world[0], SumOf("x", values)), StatusIs(absl::StatusCode::kUnavailable));
  world.Shutdown();
}

TEST(EngineFailure, AnEngineThatIsJustDestroyedFailsWhatWaits) {
  std::vector<double> values(3, 1);
  Outcome outcome;
  {
    World world(2);
    EXPECT_OK(world[1].Enqueue({SumOf("x", values)}, {outcome.done()}));
  }
  EXPECT_FALSE(outcome.Wait().ok());
}

TEST(EngineFailure, AnOperationThatRunsDuringAShutdownIsFinished) {
  World world(2);
  std::vector<double> values[2] = {{1, 1}, {1, 1}}, alone = {1};
  Outcome outcomes[2], waits;
  world.gate(0).Shut();
  for (Rank rank : {0, 1}) {
    EXPECT_OK(world[rank].Enqueue({SumOf("x", values[rank])}, {outcomes[rank].done()}));
  }
  ASSERT_TRUE(world.gate(0).AwaitArrivals(1));
  EXPECT_OK(world[0].Enqueue({SumOf("alone", alone)}, {waits.done()}));
  std::thread leaving([&] { world[1].Shutdown(Soon()); });
  EXPECT_TRUE(world.log(0).Await([](const auto& counts) { return counts.closed; }));
  EXPECT_FALSE(outcomes[0].ended());
  world.gate(0).Open();
  leaving.join();
  for (Rank rank : {0, 1}) {
    EXPECT_OK(outcomes[rank].Wait());
    EXPECT_EQ(values[rank], (std::vector<double>{2, 2}));
  }
  EXPECT_THAT(waits.Wait(), StatusIs(absl::StatusCode::kAborted,
                                     AllOf(StartsWith("Horovod has been shut down"), HasSubstr("rank 1 on host b"))));
  world.Shutdown();
}

TEST(EngineFailure, WhenRankZeroIsLostTheOthersSeeIt) {
  World world(3);
  world.EveryRank([&](Rank rank) {
    if (rank == 0) return world[0].Abort("its agent is gone");
    std::vector<double> values(3, 1);
    EXPECT_THAT(Ask(world[rank], SumOf("x", values)),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 0 on host a was lost")));
  });
  world.Shutdown();
}

// In the middle of an operation, on the way of the data only.
TEST(EngineFailure, APeerLostWhileDataMovesEndsTheGroupAndLeavesMemoryAsItWas) {
  World world(3);
  std::vector<std::vector<double>> values(3, std::vector<double>(100000, 1));
  std::vector<Outcome> outcomes(3);
  Outcome waiting;
  std::vector<double> waits(3, 1);
  world.transports().CutLinks(2, 1);
  EXPECT_OK(world[0].Enqueue({SumOf("waits", waits)}, {waiting.done()}));
  world.EveryRank(
      [&](Rank rank) { EXPECT_OK(world[rank].Enqueue({SumOf("x", values[rank])}, {outcomes[rank].done()})); });
  for (Rank rank : {0, 1, 2}) {
    EXPECT_THAT(outcomes[rank].Wait(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank")));
    EXPECT_EQ(values[rank], std::vector<double>(100000, 1)) << "the input is intact";
  }
  EXPECT_THAT(waiting.Wait(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 2")));
  world.Shutdown();
}

// The engine of one rank; the test speaks for the other one.
class Half {
 public:
  explicit Half(Rank rank) : channels_(2), transports_(2), other_(channels_.Join(1 - rank)) {
    engine_ = Engine::Create({}, SpecOf(2, rank), std::make_unique<TransportCommunicator>(transports_.Join(rank)),
                             channels_.Join(rank));
  }
  Engine& engine() { return *engine_; }
  void Say(std::string message) { EXPECT_OK(other_->Send(1 - other_->rank(), std::move(message))); }
  void Say(const Response& response) {
    ResponseList list;
    list.responses.push_back(response);
    Say(Encode(list));
  }

 private:
  InprocControlGroup channels_;
  InprocTransportGroup transports_;
  std::unique_ptr<ControlChannel> other_;
  std::unique_ptr<Engine> engine_;
};

// Whatever rank 0 says, each request ends once.
TEST(EngineFailure, NonsenseFromRankZeroEndsEveryRequestOnce) {
  Response good;
  good.sequence = 1;
  good.names = {"x"};
  good.dtype = DType::kFloat64;
  const auto changed = [&](void (*change)(Response&)) {
    Response response = good;
    change(response);
    return response;
  };
  const Response cases[] = {
      changed([](Response& response) {
        response.names = {"x", "unheard of"};
      }),
      changed([](Response& response) {
        response.names = {"x", "x"};
      }),
      changed([](Response& response) { response.sequence = 2; }),
      changed([](Response& response) { response.dtype = DType::kFloat32; }),
      changed([](Response& response) { response.kind = OperationKind::kBroadcast; }),
      changed([](Response& response) {
        response.refusal = "no";
        response.refused = {1};
        response.names = {"x", "unheard of"};
      }),
  };
  for (const Response& response : cases) {
    std::vector<double> values(3, 1);
    Outcome outcome, waits;
    Half half(1);
    EXPECT_OK(half.engine().Enqueue({SumOf("x", values)}, {outcome.done()}));
    EXPECT_OK(half.engine().Enqueue({SumOf("waits", values)}, {waits.done()}));
    half.Say(response);
    EXPECT_THAT(outcome.Wait(), StatusIs(absl::StatusCode::kInternal, HasSubstr("rank 0 sequenced")));
    EXPECT_THAT(waits.Wait(), StatusIs(absl::StatusCode::kInternal, HasSubstr("rank 0 sequenced")));
    EXPECT_EQ(values, std::vector<double>(3, 1));
  }
}

TEST(EngineFailure, ImpossibleSizesFromRankZeroAreNotBelieved) {
  const std::vector<int64_t> cases[] = {{}, {3}, {3, 4}, {-1, 3}, {int64_t{1} << 62, 3}, {3, 3, 3}};
  for (const std::vector<int64_t>& first_dims : cases) {
    std::vector<double> values(3, 1);
    Outcome outcome;
    Half half(1);
    Request request = SumOf("x", values);
    request.kind = OperationKind::kAllGather;
    EXPECT_OK(half.engine().Enqueue({request}, {outcome.done()}));
    Response response;
    response.sequence = 1;
    response.kind = OperationKind::kAllGather;
    response.names = {"x"};
    response.first_dims = first_dims;
    half.Say(response);
    EXPECT_THAT(outcome.Wait(), StatusIs(absl::StatusCode::kInternal, HasSubstr("rank 0 sequenced ALLGATHER x")));
  }
}

TEST(EngineFailure, ARefusalForOtherRanksLeavesTheNextUseWaiting) {
  std::vector<double> values(3, 1);
  Outcome outcome;
  Half half(1);
  EXPECT_OK(half.engine().Enqueue({SumOf("x", values)}, {outcome.done()}));
  Response response;
  response.names = {"x"};
  response.sequence = 1;
  response.refusal = "for rank 0";
  response.refused = {0};
  half.Say(response);
  response.sequence = 2;
  response.refusal = "for rank 1";
  response.refused = {0, 1};
  half.Say(response);
  EXPECT_THAT(outcome.Wait(), StatusIs(absl::StatusCode::kFailedPrecondition, "for rank 1"));
}

TEST(EngineFailure, BytesThatAreNoMessageEndTheGroupAndNameTheirSender) {
  for (Rank rank : {0, 1}) {
    std::vector<double> values(3, 1);
    Outcome outcome;
    Half half(rank);
    EXPECT_OK(half.engine().Enqueue({SumOf("x", values)}, {outcome.done()}));
    half.Say(std::string("\x02\x07 what is this"));
    EXPECT_THAT(outcome.Wait(), StatusIs(absl::StatusCode::kUnavailable,
                                         AllOf(HasSubstr(rank == 0 ? "rank 1 on host b" : "rank 0 on host a"),
                                               HasSubstr("control message"))));
  }
}

}  // namespace
}  // namespace farandole
