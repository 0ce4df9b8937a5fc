#include "collectives/engine/request.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace farandole {

absl::string_view Name(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAllReduce:
      return "ALLREDUCE";
    case OperationKind::kAllGather:
      return "ALLGATHER";
    case OperationKind::kBroadcast:
      return "BROADCAST";
    case OperationKind::kJoin:
      return "JOIN";
    case OperationKind::kAllToAll:
      return "ALLTOALL";
    case OperationKind::kBarrier:
      return "BARRIER";
    case OperationKind::kReduceScatter:
      return "REDUCESCATTER";
    case OperationKind::kSend:
      return "SEND";
    case OperationKind::kReceive:
      return "RECEIVE";
  }
  return "UNKNOWN";
}

absl::optional<OperationKind> OperationKindFromNumber(int64_t number) {
  for (OperationKind kind : {OperationKind::kAllReduce, OperationKind::kAllGather, OperationKind::kBroadcast,
                             OperationKind::kJoin, OperationKind::kAllToAll, OperationKind::kBarrier,
                             OperationKind::kReduceScatter, OperationKind::kSend, OperationKind::kReceive}) {
    if (static_cast<int64_t>(kind) == number) return kind;
  }
  return absl::nullopt;
}

absl::optional<int64_t> ElementCount(const std::vector<int64_t>& shape, DType dtype) {
  constexpr __int128 kBytesMax = __int128{1} << 62;
  __int128 count = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0) return absl::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    count *= dim;
    if (count * SizeOf(dtype) > kBytesMax) return absl::nullopt;
  }
  return empty ? 0 : static_cast<int64_t>(count);
}

absl::optional<int64_t> GatheredBytes(std::vector<int64_t> shape, DType dtype, const std::vector<int64_t>& first_dims) {
  if (shape.empty()) return absl::nullopt;
  int64_t rows = 0;
  for (const int64_t dim : first_dims) {
    if (dim < 0 || __builtin_add_overflow(rows, dim, &rows)) return absl::nullopt;
  }
  shape[0] = rows;
  const absl::optional<int64_t> count = ElementCount(shape, dtype);
  if (!count.has_value()) return absl::nullopt;
  return *count * SizeOf(dtype);
}

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

}  // namespace farandole
