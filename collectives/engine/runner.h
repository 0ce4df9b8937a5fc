#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/core/communicator.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/operation.h"
#include "tools/base/instant.h"

namespace farandole {

// Turns an operation into collectives on memory: packs inputs, runs, delivers outputs and results. See Executor for
// what is kept, and engine.h for what a rank that has joined gives.
//
// Thread-compatible.
class Runner {
 public:
  // `communicator` outlives it.
  Runner(Communicator* communicator, const EngineConfig& config)
      : communicator_(communicator), data_timeout_(config.data_timeout), join_divisor_(config.join_divisor) {}

  // Whether `operation` is an allreduce of so little that it can be run by BeginShort.
  bool IsShort(const Operation& operation) const;

  // Runs it to its end. `results` has one for each request. Errors: those of the communicator; ResourceExhausted.
  absl::Status Run(Operation& operation, std::vector<Result>& results);

  // Runs it as well, but does not wait for others beyond `patience`: false, then FinishShort ends it, before anything
  // else is run. Only for what IsShort.
  absl::StatusOr<bool> BeginShort(Operation& operation, Instant patience);
  absl::Status FinishShort(Operation& operation);

 private:
  struct Packed {
    std::byte* data;
    int64_t count;
  };

  absl::Status RunOne(Operation& operation, const Pending& pending, Result& result);
  absl::Status AllReduce(Operation& operation);
  absl::Status ReduceScatter(const Operation& operation, const Request& request, Result& result);
  absl::Status AllGather(const Operation& operation, const Request& request, Result& result);
  absl::Status AllToAll(const Operation& operation, const Request& request, Result& result);
  absl::Status Broadcast(const Operation& operation, const Request& request);

  bool RunsInPlace(const Operation& operation) const;
  absl::StatusOr<Packed> Pack(const Operation& operation);
  void Deliver(const Operation& operation, const std::byte* data) const;
  double PostscaleOf(const Response& response) const;
  absl::StatusOr<std::byte*> Buffer(int64_t bytes);
  Instant Deadline() const;

  struct Memory {
    std::unique_ptr<std::byte[]> data;  // touched once and kept: page faults are dear
    int64_t bytes = 0;
  };

  Communicator* const communicator_;
  const absl::Duration data_timeout_;
  const JoinDivisor join_divisor_;
  Memory buffers_[2];  // used in turn
  int present_ = 0;
  std::byte* short_data_ = nullptr;  // of the short operation that is under way
};

}  // namespace farandole
