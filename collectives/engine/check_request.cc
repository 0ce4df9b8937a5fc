#include "collectives/engine/check_request.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

template <typename... Words>
absl::Status Refuse(const Request& request, const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", request.name, ": ", words...));
}

bool NeedsInput(OperationKind kind) {
  return kind != OperationKind::kBarrier && kind != OperationKind::kJoin && kind != OperationKind::kReceive;
}

bool NeedsOutput(OperationKind kind) {
  return kind == OperationKind::kAllReduce || kind == OperationKind::kBroadcast || kind == OperationKind::kReceive;
}

bool Reduces(OperationKind kind) { return kind == OperationKind::kAllReduce || kind == OperationKind::kReduceScatter; }

absl::Status CheckReduction(const Request& request) {
  if (!Combines(request.dtype, request.op)) {
    return Refuse(request, "there is no ", Name(request.op), " of ", Name(request.dtype));
  }
  if (request.kind == OperationKind::kReduceScatter && request.op == ReduceOp::kAdasum) {
    return Refuse(request, "there is no adasum of shares: use allreduce");
  }
  return absl::OkStatus();
}

// A scalar is for rank 0 to refuse, on all ranks.
absl::Status CheckSplits(int size, const Request& request) {
  if (request.shape.empty()) return absl::OkStatus();
  const int64_t rows = request.shape[0];
  if (request.splits.empty()) {
    if (rows % size == 0) return absl::OkStatus();
    return Refuse(request, rows, " rows cannot be divided evenly among ", size, " ranks: give splits");
  }
  if (static_cast<int>(request.splits.size()) != size) {
    return Refuse(request, request.splits.size(), " splits for ", size, " ranks");
  }
  if (std::any_of(request.splits.begin(), request.splits.end(), [](int64_t split) { return split < 0; })) {
    return Refuse(request, "a split is below zero");
  }
  const int64_t sum = std::accumulate(request.splits.begin(), request.splits.end(), int64_t{0});
  if (sum > rows) return Refuse(request, "the splits ask for ", sum, " rows of ", rows);
  return absl::OkStatus();
}

absl::Status CheckOther(int size, Rank rank, const Request& request) {
  const bool between_two = request.kind == OperationKind::kSend || request.kind == OperationKind::kReceive;
  if (!between_two && request.kind != OperationKind::kBroadcast) return absl::OkStatus();
  if (request.root < 0 || request.root >= size) {
    return Refuse(request, "there is no rank ", request.root,
                  request.kind == OperationKind::kSend      ? " to send to"
                  : request.kind == OperationKind::kReceive ? " to receive from"
                                                            : " to broadcast from",
                  ", only 0 to ", size - 1);
  }
  if (between_two && request.root == rank) return Refuse(request, "rank ", rank, " and itself");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRequest(int size, Rank rank, const Request& request) {
  if (request.name.empty()) return absl::InvalidArgumentError("an operation needs a name");
  const absl::optional<int64_t> count = ElementCount(request.shape, request.dtype);
  if (!count.has_value()) return Refuse(request, "the shape ", ShapeText(request.shape), " is impossible");
  if (*count > 0 && NeedsInput(request.kind) && request.input == nullptr) {
    return Refuse(request, "it has elements but no memory");
  }
  if (*count > 0 && NeedsOutput(request.kind) && request.output == nullptr) {
    return Refuse(request, "there is no memory for its result");
  }
  if (Reduces(request.kind)) {
    RETURN_IF_ERROR(CheckReduction(request));
  }
  if (request.compression != Compression::kNone) {
    return Refuse(request, "quantised allreduces are not there yet: use no compression, fp16 or bf16");
  }
  if (request.kind == OperationKind::kAllToAll) {
    RETURN_IF_ERROR(CheckSplits(size, request));
  }
  return CheckOther(size, rank, request);
}

}  // namespace farandole
