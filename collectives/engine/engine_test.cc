#include "collectives/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/core/types.h"
#include "collectives/cpu/ring_communicator.h"
#include "collectives/transport/inproc/inproc_control_channel.h"
#include "collectives/transport/inproc/inproc_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Instant Soon() { return Now() + absl::Seconds(20); }

// Counts the collectives that pass through it.
class CountingCommunicator : public Communicator {
 public:
  CountingCommunicator(std::unique_ptr<Communicator> inner, std::atomic<int>* collectives)
      : inner_(std::move(inner)), collectives_(collectives) {}
  Rank rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  absl::Status AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                         Instant deadline) override {
    ++*collectives_;
    return inner_->AllReduce(input, output, count, dtype, op, deadline);
  }
  absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                         absl::Span<const int64_t> bytes, Instant deadline) override {
    ++*collectives_;
    return inner_->AllGather(input, output, bytes, deadline);
  }
  absl::Status Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) override {
    ++*collectives_;
    return inner_->Broadcast(data, root, deadline);
  }
  absl::Status Barrier(Instant deadline) override { return inner_->Barrier(deadline); }
  void Abort(absl::string_view reason) override { inner_->Abort(reason); }

 private:
  const std::unique_ptr<Communicator> inner_;
  std::atomic<int>* const collectives_;
};

// What became of one request.
class Outcome {
 public:
  Engine::Done done() {
    return [this](absl::Status status, Result result) {
      MutexLock lock(&mutex_);
      EXPECT_FALSE(ended_) << "completed twice";
      ended_ = true;
      status_ = std::move(status);
      result_ = std::move(result);
      changed_.NotifyAll();
    };
  }
  absl::Status Wait() {
    MutexLock lock(&mutex_);
    if (!changed_.AwaitUntil(&mutex_, Soon(), [this] {
          mutex_.AssertHeld();
          return ended_;
        })) {
      return absl::DeadlineExceededError("never completed");
    }
    return status_;
  }
  const Result& result() ABSL_NO_THREAD_SAFETY_ANALYSIS { return result_; }  // after Wait

 private:
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Result result_ ABSL_GUARDED_BY(mutex_);
};

// A group of engines in this process.
class World {
 public:
  explicit World(int size, EngineConfig config = {}) : channels_(size), transports_(size), collectives_(size) {
    GroupSpec spec;
    spec.generation = Generation(1);
    for (int rank = 0; rank < size; ++rank)
      spec.members.push_back({std::string(1, static_cast<char>('a' + rank)), {}, ""});
    for (spec.rank = 0; spec.rank < size; ++spec.rank) {
      auto ring = std::make_unique<RingCommunicator>(transports_.Join(spec.rank));
      engines_.push_back(Engine::Create(
          config, spec, std::make_unique<CountingCommunicator>(std::move(ring), &collectives_[spec.rank]),
          channels_.Join(spec.rank)));
    }
  }

  int size() const { return static_cast<int>(engines_.size()); }
  Engine& operator[](Rank rank) { return *engines_[rank]; }
  InprocControlGroup& channels() { return channels_; }
  int collectives(Rank rank) const { return collectives_[rank]; }

  // Runs `body(rank)` on a thread per rank.
  void EveryRank(const std::function<void(Rank)>& body) {
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size(); ++rank) threads.emplace_back([&body, rank] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }

  void Shutdown() {
    EveryRank([this](Rank rank) { engines_[rank]->Shutdown(Soon()); });
  }

 private:
  InprocControlGroup channels_;
  InprocTransportGroup transports_;
  std::vector<std::atomic<int>> collectives_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

// A request that sums `values` in place.
Request SumOf(std::string name, std::vector<double>& values) {
  Request request;
  request.name = std::move(name);
  request.dtype = DType::kFloat64;
  request.shape = {static_cast<int64_t>(values.size())};
  request.input = request.output = values.data();
  return request;
}

absl::Status Ask(Engine& engine, Request request, Result* result = nullptr) {
  Outcome outcome;
  if (absl::Status status = engine.Enqueue({std::move(request)}, {outcome.done()}); !status.ok()) return status;
  absl::Status status = outcome.Wait();
  if (result != nullptr) *result = outcome.result();
  return status;
}

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
    EXPECT_EQ(result.first_dims, (std::vector<int64_t>{0, 1, 2}));
    const auto* got = reinterpret_cast<const int64_t*>(result.gathered.data());
    EXPECT_EQ(std::vector<int64_t>(got, got + result.gathered.size() / 8), (std::vector<int64_t>{1, 1, 2, 2, 2, 2}));

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

TEST(Engine, ADisagreementIsTheSameErrorOnAllRanksAndTheNameWorksAgain) {
  World world(3);
  std::vector<std::string> messages(3);
  world.EveryRank([&](Rank rank) {
    std::vector<double> values(rank == 1 ? 4 : 3, 1);
    const absl::Status status = Ask(world[rank], SumOf("x", values));
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(StartsWith("Mismatched ALLREDUCE tensor shapes"), HasSubstr("ranks 0, 2"),
                                       HasSubstr("rank 1 on host b"), HasSubstr("[3]"), HasSubstr("[4]"))));
    messages[rank] = std::string(status.message());
    EXPECT_EQ(values, std::vector<double>(values.size(), 1)) << "a refused tensor is as it was";
    values.assign(3, 1);
    EXPECT_OK(Ask(world[rank], SumOf("x", values)));
    EXPECT_EQ(values, std::vector<double>(3, 3));
  });
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(messages[0], messages[2]);
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

TEST(Engine, ARankThatShutsDownFailsWhatCannotCompleteOnTheOthers) {
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

TEST(Engine, WhatWasSequencedBeforeAShutdownIsStillRun) {
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

TEST(Engine, ALostPeerIsNamedOnAllOthers) {
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

TEST(Engine, AnAbortEndsWhatWaitsPromptly) {
  World world(2);
  std::vector<double> values(3, 1);
  Outcome outcome;
  EXPECT_OK(world[0].Enqueue({SumOf("alone", values)}, {outcome.done()}));
  world[0].Abort("the agent is gone");
  EXPECT_THAT(outcome.Wait(), StatusIs(absl::StatusCode::kUnavailable, "the agent is gone"));
  EXPECT_THAT(Ask(world[0], SumOf("x", values)), StatusIs(absl::StatusCode::kUnavailable));
  world.Shutdown();
}

TEST(Engine, AnEngineThatIsJustDestroyedFailsWhatWaits) {
  std::vector<double> values(3, 1);
  Outcome outcome;
  {
    World world(2);
    EXPECT_OK(world[1].Enqueue({SumOf("x", values)}, {outcome.done()}));
  }
  EXPECT_FALSE(outcome.Wait().ok());
}

}  // namespace
}  // namespace farandole
