#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"
#include "collectives/core/types.h"

namespace farandole {

// What every Communicator on ordinary memory refuses before anything is sent, with the same words: kInvalidArgument.
// Pure.

absl::Status CheckAllReduce(const void* input, const void* output, int64_t count, DType dtype, ReduceOp op);
absl::Status CheckAdasum(const void* data, absl::Span<const int64_t> pieces, DType dtype);
absl::Status CheckReduceScatter(int size, const void* input, const void* output, absl::Span<const int64_t> counts,
                                DType dtype, ReduceOp op);
absl::Status CheckAllGather(int size, Rank rank, int64_t input_bytes, int64_t output_bytes,
                            absl::Span<const int64_t> bytes);
absl::Status CheckAllToAll(int size, Rank rank, int64_t input_bytes, absl::Span<const int64_t> to, int64_t output_bytes,
                           absl::Span<const int64_t> from);
absl::Status CheckBroadcast(int size, Rank root);
// Send and Receive: `what` is the word for it.
absl::Status CheckPeer(absl::string_view what, int size, Rank rank, Rank peer);

// Where each of a row of blocks begins, and one more: their end.
std::vector<int64_t> BeginsOf(absl::Span<const int64_t> lengths);

}  // namespace farandole
