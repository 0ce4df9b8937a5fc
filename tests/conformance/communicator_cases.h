#pragma once

// One collective with all its arguments, the same for every rank, as data: so that a suite can enumerate them, draw
// them at random and name the one that went wrong.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "collectives/core/communicator.h"
#include "collectives/core/types.h"
#include "collectives/reference/reference.h"
#include "tools/base/instant.h"
#include "tools/base/prng.h"

namespace farandole::testing {

enum class Operation {
  kAllReduce,
  kAdasum,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kBarrier,
  kSendReceive,
};
inline constexpr Operation kOperations[] = {Operation::kAllReduce, Operation::kAdasum,     Operation::kReduceScatter,
                                            Operation::kAllGather, Operation::kAllToAll,   Operation::kBroadcast,
                                            Operation::kBarrier,   Operation::kSendReceive};
std::string Name(Operation operation);
inline std::ostream& operator<<(std::ostream& out, Operation operation) { return out << Name(operation); }

struct Case {
  Operation operation = Operation::kBarrier;
  DType dtype = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  // Elements: kAllReduce, kBroadcast, kSendReceive: one number. kAdasum: the pieces. kReduceScatter, kAllGather: one
  // per rank. kAllToAll: of rank i for rank j at i * size + j.
  std::vector<int64_t> counts;
  Rank root = 0;  // kBroadcast; who sends in kSendReceive
  Rank peer = 0;  // who receives in kSendReceive
  bool in_place = false;
  int64_t misalignment = 0;  // bytes from any alignment, of input and output
  uint64_t seed = 0;         // of the elements
};
std::string Describe(const Case& what);

// Runs it as this communicator's rank. The result: what is in the output afterwards, nothing if this rank has none. An
// input that was written to and an output written to beyond its end are kDataLoss.
absl::StatusOr<reference::Bytes> RunCase(Communicator& communicator, const Case& what, Instant deadline);

// Given what RunCase gave on each rank. nullopt if all is as the reference has it, and the same everywhere if it has to
// be.
absl::optional<std::string> Mismatch(const Case& what, const std::vector<reference::Bytes>& outputs);

// Each operation with each type, each way to reduce it, few and many elements, in place and not.
std::vector<Case> EveryCase(int size);

// Any operation with any arguments; mostly short.
Case RandomCase(int size, Prng& prng);

// One of an operation, with so much data that ranks wait for each other; each rank but `root` has to wait for `root`.
Case LongCase(Operation operation, int size, Rank root);

}  // namespace farandole::testing
