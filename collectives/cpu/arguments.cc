#include "collectives/cpu/arguments.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

template <typename... Words>
absl::Status Refuse(const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat(words...));
}

absl::Status CheckLengths(absl::string_view what, int size, absl::Span<const int64_t> lengths) {
  if (static_cast<int>(lengths.size()) != size) {
    return Refuse(what, " in a group of ", size, ": a list of ", lengths.size(), " sizes");
  }
  if (std::any_of(lengths.begin(), lengths.end(), [](int64_t n) { return n < 0; })) {
    return Refuse(what, ": a size below zero");
  }
  return absl::OkStatus();
}

absl::Status CheckCombines(absl::string_view what, DType dtype, ReduceOp op) {
  return Combines(dtype, op) ? absl::OkStatus() : Refuse(what, ": there is no ", Name(op), " of ", Name(dtype));
}

absl::Status CheckElements(absl::string_view what, int64_t count, DType dtype, bool has_memory) {
  if (count < 0 || count > std::numeric_limits<int64_t>::max() / SizeOf(dtype)) {
    return Refuse(what, " of ", count, " elements");
  }
  if (count > 0 && !has_memory) return Refuse(what, " of ", count, " elements without a buffer");
  return absl::OkStatus();
}

int64_t Sum(absl::Span<const int64_t> lengths) { return std::accumulate(lengths.begin(), lengths.end(), int64_t{0}); }

}  // namespace

absl::Status CheckAllReduce(const void* input, const void* output, int64_t count, DType dtype, ReduceOp op) {
  RETURN_IF_ERROR(CheckElements("allreduce", count, dtype, input != nullptr && output != nullptr));
  return CheckCombines("allreduce", dtype, op);
}

absl::Status CheckAdasum(const void* data, absl::Span<const int64_t> pieces, DType dtype) {
  RETURN_IF_ERROR(CheckLengths("adasum", static_cast<int>(pieces.size()), pieces));
  RETURN_IF_ERROR(CheckElements("adasum", Sum(pieces), dtype, data != nullptr));
  return CheckCombines("adasum", dtype, ReduceOp::kAdasum);
}

absl::Status CheckReduceScatter(int size, const void* input, const void* output, absl::Span<const int64_t> counts,
                                DType dtype, ReduceOp op) {
  RETURN_IF_ERROR(CheckLengths("reducescatter", size, counts));
  RETURN_IF_ERROR(CheckElements("reducescatter", Sum(counts), dtype, input != nullptr));
  if (op == ReduceOp::kAdasum) return Refuse("reducescatter: there is no adasum of shares");
  return CheckCombines("reducescatter", dtype, op);
}

absl::Status CheckAllGather(int size, Rank rank, int64_t input_bytes, int64_t output_bytes,
                            absl::Span<const int64_t> bytes) {
  RETURN_IF_ERROR(CheckLengths("allgather", size, bytes));
  const int64_t total = Sum(bytes);
  if (input_bytes == bytes[rank] && output_bytes == total) return absl::OkStatus();
  return Refuse("allgather: rank ", rank, " gives ", input_bytes, " and expects ", output_bytes,
                " bytes, the list of sizes says ", bytes[rank], " and ", total);
}

absl::Status CheckAllToAll(int size, Rank rank, int64_t input_bytes, absl::Span<const int64_t> to, int64_t output_bytes,
                           absl::Span<const int64_t> from) {
  RETURN_IF_ERROR(CheckLengths("alltoall", size, to));
  RETURN_IF_ERROR(CheckLengths("alltoall", size, from));
  if (to[rank] != from[rank]) {
    return Refuse("alltoall: rank ", rank, " gives itself ", to[rank], " and expects ", from[rank], " bytes");
  }
  if (input_bytes == Sum(to) && output_bytes == Sum(from)) return absl::OkStatus();
  return Refuse("alltoall: rank ", rank, " gives ", input_bytes, " and expects ", output_bytes,
                " bytes, the lists of sizes say ", Sum(to), " and ", Sum(from));
}

absl::Status CheckBroadcast(int size, Rank root) {
  return root >= 0 && root < size ? absl::OkStatus() : Refuse("broadcast from rank ", root, " in a group of ", size);
}

absl::Status CheckPeer(absl::string_view what, int size, Rank rank, Rank peer) {
  if (peer == rank) return Refuse(what, ": rank ", rank, " and itself");
  return peer >= 0 && peer < size ? absl::OkStatus()
                                  : Refuse(what, ": there is no rank ", peer, " in a group of ", size);
}

std::vector<int64_t> BeginsOf(absl::Span<const int64_t> lengths) {
  std::vector<int64_t> begins(lengths.size() + 1, 0);
  std::partial_sum(lengths.begin(), lengths.end(), begins.begin() + 1);
  return begins;
}

}  // namespace farandole
