#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace farandole {

struct RankTrace {
  int rank = 0;
  absl::string_view text;  // of its file; borrowed for the call
};

// The traces of several ranks, all in rank 0's clock, as one: tensor t of rank r is the process "rank r: t", sorted by
// rank. A file whose end was cut off is read up to its last whole event (a line each, as Timeline writes them).
// kInvalidArgument, with the rank: not a trace. Pure.
absl::StatusOr<std::string> MergeTraces(absl::Span<const RankTrace> traces);

}  // namespace farandole
