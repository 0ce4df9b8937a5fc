#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "collectives/core/byte_buffer.h"
#include "collectives/core/group.h"
#include "collectives/core/types.h"

namespace farandole {

// The values travel on the engine's wire; they never change.
enum class OperationKind : uint8_t {
  kAllReduce = 0,
  kAllGather = 1,
  kBroadcast = 2,
  kJoin = 3,  // this rank has nothing more to give until all ranks have joined
  kAllToAll = 5,
  kBarrier = 6,
  kReduceScatter = 7,
  kSend = 8,  // with kReceive under the same name on another rank; the others are not asked
  kReceive = 9,
};

// How an allreduce of float32 travels.
enum class Compression : uint8_t {
  kNone = 0,
  kInt8 = 1,  // quantised to 8 bits, with error feedback under the request's name
};

absl::string_view Name(OperationKind kind);  // "ALLREDUCE": the original's words
absl::optional<OperationKind> OperationKindFromNumber(int64_t number);

// What one rank asks for. All ranks must ask under the same name, in any order among other names.
struct Request {
  OperationKind kind = OperationKind::kAllReduce;
  std::string name;  // the wire name, for example "allreduce.loss"; unique among this rank's unfinished requests
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;    // allgather, alltoall: shape[0] may differ between ranks
  ReduceOp op = ReduceOp::kSum;  // allreduce, reducescatter
  Rank root = 0;                 // broadcast: whose data. send: to whom. receive: from whom
  double prescale = 1.0;         // allreduce, reducescatter: out = postscale * reduce(prescale * in)
  double postscale = 1.0;
  std::vector<int64_t> splits;  // alltoall: how many rows go to each rank; empty: the same number to all
  Compression compression = Compression::kNone;  // allreduce
  int priority = 0;             // what is ready with a higher one goes first; the same on all ranks, or rank 0's counts
  const void* input = nullptr;  // borrowed until completion, never written unless it is `output`
  // allreduce, broadcast: as large as `input`, may be it. receive: what comes. Others: unused, see Result.
  void* output = nullptr;
};

// What a request gives back, where the size of it is known only after negotiation.
struct Result {
  // allgather: all contributions in rank order. alltoall: the rows that came, in rank order. reducescatter: this rank's
  // rows.
  ByteBuffer output;
  // By rank: allgather: shape[0] there. alltoall: how many rows came from there. reducescatter: how many rows it gets.
  std::vector<int64_t> rows;
  Rank last_joined = -1;  // join: who joined last, the same on all ranks
};

// Product of the dimensions (1 for a scalar); nullopt if one is negative or the bytes of it leave 62 bits.
absl::optional<int64_t> ElementCount(const std::vector<int64_t>& shape, DType dtype);

// Bytes of an allgather's result: rows of `shape` (not a scalar's), of which rank r gives `first_dims[r]`. nullopt as
// above.
absl::optional<int64_t> GatheredBytes(std::vector<int64_t> shape, DType dtype, const std::vector<int64_t>& first_dims);

// "[3, 4]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace farandole
