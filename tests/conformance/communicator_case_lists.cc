#include <algorithm>

#include "tests/conformance/communicator_cases.h"

namespace farandole::testing {
namespace {

// Uneven, with empty ones among them, about `count` altogether.
std::vector<int64_t> Uneven(int parts, int64_t count, Prng& prng) {
  std::vector<int64_t> counts(static_cast<size_t>(parts), 0);
  for (int64_t& part : counts) {
    if (!prng.Chance(1, 5)) part = static_cast<int64_t>(prng.Below(static_cast<uint64_t>(2 * count / parts + 2)));
  }
  return counts;
}

std::vector<int64_t> CountsOf(Operation operation, int64_t count, int size, Prng& prng) {
  switch (operation) {
    case Operation::kAllReduce:
    case Operation::kBroadcast:
    case Operation::kSendReceive:
      return {count};
    case Operation::kAdasum:
      return Uneven(1 + static_cast<int>(prng.Below(4)), count, prng);
    case Operation::kReduceScatter:
    case Operation::kAllGather:
      if (count == 0) return std::vector<int64_t>(static_cast<size_t>(size), 0);
      return Uneven(size, count, prng);
    case Operation::kAllToAll:
      if (count == 0) return std::vector<int64_t>(static_cast<size_t>(size * size), 0);
      return Uneven(size * size, count * size, prng);
    case Operation::kBarrier:
      return {};
  }
  return {};
}

bool Reduces(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter;
}

// Whether the contract has it.
bool Exists(Operation operation, DType dtype, ReduceOp op) {
  if (operation == Operation::kAdasum) return op == ReduceOp::kAdasum && IsFloat(dtype);
  if (operation == Operation::kReduceScatter && op == ReduceOp::kAdasum) return false;
  if (!Reduces(operation)) return op == ReduceOp::kSum;
  return Combines(dtype, op);
}

Case CaseOf(Operation operation, DType dtype, ReduceOp op, int64_t count, int size, Prng& prng) {
  Case what;
  what.operation = operation;
  what.dtype = dtype;
  what.op = op;
  what.counts = CountsOf(operation, count, size, prng);
  what.root = static_cast<Rank>(prng.Below(static_cast<uint64_t>(size)));
  what.peer = static_cast<Rank>(
      (what.root + 1 + static_cast<Rank>(prng.Below(static_cast<uint64_t>(std::max(size - 1, 1))))) % size);
  what.in_place = prng.Chance(1, 2);
  what.misalignment = prng.Chance(1, 2) ? 0 : static_cast<int64_t>(prng.Below(16));
  what.seed = prng.Below(1'000'000);
  return what;
}

}  // namespace

std::vector<Case> EveryCase(int size) {
  Prng prng(static_cast<uint64_t>(size));
  std::vector<Case> cases;
  for (Operation operation : kOperations) {
    if (operation == Operation::kSendReceive && size == 1) continue;
    for (DType dtype : kDTypes) {
      for (ReduceOp op : kReduceOps) {
        if (!Exists(operation, dtype, op)) continue;
        for (int64_t count : {0, 1, size - 1, 2 * size + 1, 700}) {
          Case what = CaseOf(operation, dtype, op, count, size, prng);
          cases.push_back(what);
          if (operation != Operation::kAllReduce && operation != Operation::kAllGather) continue;
          what.in_place = !what.in_place;
          cases.push_back(what);
        }
      }
    }
  }
  return cases;
}

Case RandomCase(int size, Prng& prng) {
  for (;;) {
    const Operation operation = kOperations[prng.Below(std::size(kOperations))];
    const DType dtype = kDTypes[prng.Below(std::size(kDTypes))];
    const ReduceOp op = kReduceOps[prng.Below(std::size(kReduceOps))];
    if (!Exists(operation, dtype, op) || (operation == Operation::kSendReceive && size == 1)) continue;
    const uint64_t longest = prng.Chance(1, 20) ? 20'000 : prng.Chance(1, 4) ? 1000 : 20;
    return CaseOf(operation, dtype, op, static_cast<int64_t>(prng.Below(longest)), size, prng);
  }
}

Case LongCase(Operation operation, int size, Rank root) {
  constexpr int64_t kCount = 400'003;
  Case what;
  what.operation = operation;
  what.dtype = DType::kFloat32;
  what.op = ReduceOp::kSum;
  what.root = root;
  what.peer = (root + 1) % size;
  switch (operation) {
    case Operation::kAllReduce:
    case Operation::kAdasum:
    case Operation::kBroadcast:
    case Operation::kSendReceive:
      what.counts = {kCount};
      break;
    case Operation::kReduceScatter:
    case Operation::kAllGather:
      what.counts.assign(static_cast<size_t>(size), kCount / size);
      break;
    case Operation::kAllToAll:
      what.counts.assign(static_cast<size_t>(size * size), kCount / size);
      break;
    case Operation::kBarrier:
      break;
  }
  return what;
}

}  // namespace farandole::testing
