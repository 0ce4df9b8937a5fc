#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "collectives/core/group.h"
#include "collectives/core/types.h"

namespace farandole {

// The values travel on the engine's wire; they never change.
enum class OperationKind : uint8_t { kAllReduce = 0, kAllGather = 1, kBroadcast = 2, kBarrier = 6 };

absl::string_view Name(OperationKind kind);  // "ALLREDUCE": the original's words
absl::optional<OperationKind> OperationKindFromNumber(int64_t number);

// What one rank asks for. All ranks must ask under the same name, in any order among other names.
struct Request {
  OperationKind kind = OperationKind::kAllReduce;
  std::string name;  // the wire name, for example "allreduce.loss"; unique among this rank's unfinished requests
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;    // allgather: shape[0] may differ between ranks
  ReduceOp op = ReduceOp::kSum;  // allreduce
  Rank root = 0;                 // broadcast
  double prescale = 1.0;         // allreduce: out = postscale * reduce(prescale * in)
  double postscale = 1.0;
  const void* input = nullptr;  // borrowed until completion, never written unless it is `output`
  void* output = nullptr;       // allreduce, broadcast: as large as `input`, may be it. allgather: unused, see Result
};

// What a request gives back. For allgather the bytes are here: their size is known only after negotiation.
struct Result {
  std::vector<std::byte> gathered;  // allgather: all contributions in rank order
  std::vector<int64_t> first_dims;  // allgather: shape[0] of every rank
};

// Product of the dimensions (1 for a scalar); nullopt if one is negative or the bytes of it leave 62 bits.
absl::optional<int64_t> ElementCount(const std::vector<int64_t>& shape, DType dtype);

// Bytes of an allgather's result: rows of `shape` (not a scalar's), of which rank r gives `first_dims[r]`. nullopt as
// above.
absl::optional<int64_t> GatheredBytes(std::vector<int64_t> shape, DType dtype, const std::vector<int64_t>& first_dims);

// "[3, 4]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace farandole
