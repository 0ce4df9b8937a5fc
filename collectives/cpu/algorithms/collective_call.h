#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"
#include "collectives/schedule/segment.h"
#include "collectives/transport/transport.h"
#include "tools/base/instant.h"

namespace farandole {

// One collective that is running: what all algorithms need.
struct CollectiveCall {
  Transport& transport;
  uint64_t operation;
  Instant deadline;
  Rank rank;
  int size;
  int64_t chunk_bytes;              // what is moved and reduced at a time
  std::vector<std::byte>& scratch;  // kept from one collective to the next

  absl::Status Post(Rank to, absl::Span<const std::byte> bytes) const { return transport.Post(operation, to, bytes); }
  absl::Status Receive(Rank from, absl::Span<std::byte> bytes) const {
    return transport.Receive(operation, from, bytes, deadline);
  }
  absl::Status Flush() const { return transport.Flush(deadline); }
  absl::Status SendRecv(Rank to, absl::Span<const std::byte> out, Rank from, absl::Span<std::byte> in) const {
    return transport.SendRecv(operation, to, out, from, in, deadline);
  }

  // The ranks `distance` behind and before this one.
  Rank After(int distance) const { return (rank + distance) % size; }
  Rank Before(int distance) const { return (rank - distance + size) % size; }

  // Memory of this call; ends what it was given before.
  absl::Span<std::byte> Scratch(int64_t bytes) const {
    if (static_cast<int64_t>(scratch.size()) < bytes) scratch.resize(static_cast<size_t>(bytes));
    return absl::MakeSpan(scratch).subspan(0, static_cast<size_t>(bytes));
  }
};

inline void CopyBytes(absl::Span<const std::byte> from, std::byte* to) {
  if (!from.empty() && from.data() != to) std::memmove(to, from.data(), from.size());
}

// [begin, end) of a list of blocks that stand one after the other; `begins` has one more: the end.
inline Segment BlockOf(absl::Span<const int64_t> begins, int i) { return {begins[i], begins[i + 1]}; }

inline absl::Span<std::byte> Part(absl::Span<std::byte> of, Segment s) { return of.subspan(s.begin, s.size()); }
inline absl::Span<const std::byte> Part(absl::Span<const std::byte> of, Segment s) {
  return of.subspan(s.begin, s.size());
}

}  // namespace farandole
