#pragma once

#include <functional>
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
#include "collectives/engine/testing/observed_channel.h"
#include "collectives/engine/testing/observed_communicator.h"
#include "collectives/transport/inproc/inproc_control_channel.h"
#include "collectives/transport/inproc/inproc_transport.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole {

// What the tests of the engine share.

inline Instant Soon() { return Now() + absl::Seconds(20); }

// Ranks on hosts "a", "b", ...
inline GroupSpec SpecOf(int size, Rank rank) {
  GroupSpec spec;
  spec.generation = Generation(1);
  spec.rank = rank;
  for (int r = 0; r < size; ++r) spec.members.push_back({std::string(1, static_cast<char>('a' + r)), {}, ""});
  return spec;
}

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
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (!changed_.AwaitUntil(&mutex_, Soon(), [this] {
          mutex_.AssertHeld();
          return ended_;
        })) {
      return absl::DeadlineExceededError("never completed");
    }
    return status_;
  }
  bool ended() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return ended_;
  }
  // Once.
  Result result() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return std::move(result_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Result result_ ABSL_GUARDED_BY(mutex_);
};

// A group of engines in this process, over real ring collectives and scripted links.
class World {
 public:
  explicit World(int size, EngineConfig config = {})
      : channels_(size), transports_(size), logs_(size), gates_(size), engines_(size) {
    for (Rank rank = 0; rank < size; ++rank) {
      auto ring = std::make_unique<TransportCommunicator>(transports_.Join(rank));
      engines_[rank] = Engine::Create(config, SpecOf(size, rank),
                                      std::make_unique<ObservedCommunicator>(std::move(ring), &gates_[rank]),
                                      std::make_unique<ObservedChannel>(channels_.Join(rank), &logs_[rank]));
    }
  }

  int size() const { return static_cast<int>(engines_.size()); }
  Engine& operator[](Rank rank) { return *engines_[rank]; }
  InprocControlGroup& channels() { return channels_; }
  InprocTransportGroup& transports() { return transports_; }
  ChannelLog& log(Rank rank) { return logs_[rank]; }
  Gate& gate(Rank rank) { return gates_[rank]; }
  int collectives(Rank rank) { return gates_[rank].arrivals(); }

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
  std::vector<ChannelLog> logs_;
  std::vector<Gate> gates_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

// A request that sums `values` in place.
inline Request SumOf(std::string name, std::vector<double>& values) {
  Request request;
  request.name = std::move(name);
  request.dtype = DType::kFloat64;
  request.shape = {static_cast<int64_t>(values.size())};
  request.input = request.output = values.data();
  return request;
}

inline absl::Status Ask(Engine& engine, Request request, Result* result = nullptr) {
  Outcome outcome;
  if (absl::Status status = engine.Enqueue({std::move(request)}, {outcome.done()}); !status.ok()) return status;
  absl::Status status = outcome.Wait();
  if (result != nullptr) *result = outcome.result();
  return status;
}

}  // namespace farandole
