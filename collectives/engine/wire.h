#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/core/group.h"
#include "collectives/core/types.h"
#include "collectives/engine/request.h"

namespace farandole {

// What the engines of a group say to each other on the ControlChannel: every rank sends RequestLists to rank 0, which
// answers all ranks with the same ResponseLists in the same order.

// A rank wants an operation. What it says of its request, without the memory.
struct Announcement {
  OperationKind kind = OperationKind::kAllReduce;
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;
  double prescale = 1.0;
  double postscale = 1.0;
  int32_t priority = 0;     // what is ready with a higher one goes first; rank 0's counts
  uint64_t group = 0;       // the same for requests that were enqueued together; 0: alone
  uint32_t group_size = 1;  // how many those are

  friend bool operator==(const Announcement&, const Announcement&) = default;
};

struct RequestList {
  std::vector<Announcement> requests;
  bool leaving = false;  // this rank's last list: it has called shutdown
  std::string failure;   // this rank cannot go on, and why; empty: it can

  bool empty() const { return requests.empty() && !leaving && failure.empty(); }
  friend bool operator==(const RequestList&, const RequestList&) = default;
};

// One operation of the group's sequence: several requests fused into one, or one that is refused.
struct Response {
  uint64_t sequence = 0;  // 1, 2, ...: every rank runs them in this order
  OperationKind kind = OperationKind::kAllReduce;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;  // broadcast: as asked for. join: who joined last
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<std::string> names;   // at least one; more: fused, in this order
  std::vector<int64_t> first_dims;  // allgather: shape[0] of every rank; send: who sends, who receives
  // Who takes part without having asked, since it has joined, ascending; and if there are any, what they need to know
  // of the tensors: the shape of each of `names`.
  std::vector<int64_t> joined;
  std::vector<std::vector<int64_t>> shapes;
  // Not empty: the ranks disagree. The requests of `refused` under this name fail with this text; other ranks, who have
  // not asked yet or wait for the name's next use, have nothing to do.
  std::string refusal;
  std::vector<int64_t> refused;  // ranks, ascending

  friend bool operator==(const Response&, const Response&) = default;
};

struct ResponseList {
  std::vector<Response> responses;
  // Not kOk: the group's last list. After `responses` everything else fails with this.
  absl::StatusCode closed = absl::StatusCode::kOk;
  std::string closed_reason;

  bool empty() const { return responses.empty() && closed == absl::StatusCode::kOk; }
  friend bool operator==(const ResponseList&, const ResponseList&) = default;
};

// A version byte and a kind, then the fields in order: integers little-endian and of fixed width, strings and lists
// with a 64-bit length before them. Decoding takes bytes from anywhere: InvalidArgument, naming the field, for what is
// cut short, too long, unknown, impossible or left over; it allocates no more than a small multiple of the input.
std::string Encode(const RequestList& list);
std::string Encode(const ResponseList& list);
absl::StatusOr<RequestList> DecodeRequestList(absl::string_view bytes);
absl::StatusOr<ResponseList> DecodeResponseList(absl::string_view bytes);

}  // namespace farandole
