#include "collectives/cpu/algorithms/broadcast.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "collectives/schedule/broadcast_schedule.h"
#include "collectives/schedule/ring_schedule.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// In a binomial tree in which each place is followed by the places below it: how many there are, itself included.
int SubtreeOf(int size, int place) {
  const int span = place == 0 ? size : static_cast<int>(std::bit_floor(static_cast<uint32_t>(place & -place)));
  return std::min(span, size - place);
}

// Each place gets the parts of its subtree, and deals the upper ones out.
absl::Status Scatter(const CollectiveCall& call, absl::Span<std::byte> data, Rank root, int place) {
  const int64_t length = static_cast<int64_t>(data.size());
  const auto parts = [&](int begin, int end) {
    const int64_t from = SegmentOf(length, call.size, begin).begin;
    return data.subspan(from, SegmentOf(length, call.size, end - 1).end - from);
  };
  if (place > 0) {
    RETURN_IF_ERROR(call.Receive(RankOfPlace(call.size, place & (place - 1), root),
                                 parts(place, place + SubtreeOf(call.size, place))));
  }
  const uint32_t below =
      place == 0 ? std::bit_ceil(static_cast<uint32_t>(call.size)) : static_cast<uint32_t>(place & -place);
  for (uint32_t bit = below / 2; bit >= 1; bit /= 2) {
    const int child = place + static_cast<int>(bit);
    if (child >= call.size) continue;
    RETURN_IF_ERROR(call.Post(RankOfPlace(call.size, child, root), parts(child, child + SubtreeOf(call.size, child))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TreeBroadcast(const CollectiveCall& call, absl::Span<std::byte> data, Rank root) {
  const int place = PlaceFromRoot(call.size, call.rank, root);
  if (place > 0) {
    RETURN_IF_ERROR(call.Receive(RankOfPlace(call.size, BinomialParent(place), root), data));
  }
  for (int child : BinomialChildren(call.size, place)) {
    RETURN_IF_ERROR(call.Post(RankOfPlace(call.size, child, root), data));
  }
  return call.Flush();
}

absl::Status ChainBroadcast(const CollectiveCall& call, absl::Span<std::byte> data, Rank root, int64_t chunk_bytes) {
  const int place = PlaceFromRoot(call.size, call.rank, root);
  const Segment all{0, static_cast<int64_t>(data.size())};
  for (int64_t i = 0; i < ChunkCount(all.size(), chunk_bytes); ++i) {
    const absl::Span<std::byte> part = Part(data, ChunkOf(all, chunk_bytes, i));
    if (place > 0) {
      RETURN_IF_ERROR(call.Receive(RingPrevious(call.size, call.rank), part));
    }
    if (place < call.size - 1) {
      RETURN_IF_ERROR(call.Post(RingNext(call.size, call.rank), part));
    }
  }
  return call.Flush();
}

absl::Status ScatterBroadcast(const CollectiveCall& call, absl::Span<std::byte> data, Rank root) {
  const int place = PlaceFromRoot(call.size, call.rank, root);
  const int64_t length = static_cast<int64_t>(data.size());
  RETURN_IF_ERROR(Scatter(call, data, root, place));
  // The places are the ranks of a ring that begins at the root.
  for (int step = 0; step < RingSteps(call.size); ++step) {
    const RingStep now = RingAllGatherStep(call.size, place, step);
    RETURN_IF_ERROR(call.Post(RingNext(call.size, call.rank), Part(data, SegmentOf(length, call.size, now.out))));
    RETURN_IF_ERROR(call.Receive(RingPrevious(call.size, call.rank), Part(data, SegmentOf(length, call.size, now.in))));
  }
  return call.Flush();
}

}  // namespace farandole
