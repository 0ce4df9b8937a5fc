#include "collectives/cpu/algorithms/gather.h"

#include <array>
#include <vector>

#include "collectives/schedule/broadcast_schedule.h"
#include "collectives/schedule/exchange_schedule.h"
#include "collectives/schedule/ring_schedule.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Up to here a message to each costs less than the steps of a Bruck exchange, each of which waits for the one before.
constexpr int kEachToEachRanks = 4;

// `begins` of the blocks in ring order from this rank's own, of which the first stands in `blocks`.
absl::Status BruckExchange(const CollectiveCall& call, absl::Span<std::byte> blocks, absl::Span<const int64_t> begins) {
  for (int step = 0; step < ExchangeSteps(call.size); ++step) {
    const ExchangeStep now = ExchangeStepOf(call.size, call.rank, step);
    RETURN_IF_ERROR(call.Post(now.to, Part(blocks, {0, begins[now.blocks]})));
    RETURN_IF_ERROR(call.Receive(now.from, Part(blocks, {begins[now.have], begins[now.have + now.blocks]})));
  }
  return call.Flush();
}

}  // namespace

int BlockPlace(const CollectiveCall& call, Rank rank) { return PlaceFromRoot(call.size, rank, call.rank); }

absl::Status GatherEqualBlocks(const CollectiveCall& call, absl::Span<const std::byte> own,
                               absl::Span<std::byte> blocks) {
  const int64_t bytes = static_cast<int64_t>(own.size());
  CopyBytes(own, blocks.data());
  if (call.size > kEachToEachRanks) {
    std::vector<int64_t> begins(call.size + 1);
    for (int i = 0; i <= call.size; ++i) begins[i] = i * bytes;
    return BruckExchange(call, blocks, begins);
  }
  for (int d = 1; d < call.size; ++d) RETURN_IF_ERROR(call.Post(call.Before(d), blocks.subspan(0, own.size())));
  for (int d = 1; d < call.size; ++d) {
    RETURN_IF_ERROR(call.Receive(call.After(d), blocks.subspan(d * bytes, own.size())));
  }
  return call.Flush();
}

absl::Status ShortAllGather(const CollectiveCall& call, absl::Span<const std::byte> input, absl::Span<std::byte> output,
                            absl::Span<const int64_t> begins) {
  std::vector<int64_t> places(call.size + 1, 0);
  for (int i = 0; i < call.size; ++i) places[i + 1] = places[i] + BlockOf(begins, call.After(i)).size();
  const absl::Span<std::byte> blocks = call.Scratch(begins[call.size]);
  CopyBytes(input, blocks.data());
  RETURN_IF_ERROR(BruckExchange(call, blocks, places));
  for (int i = 0; i < call.size; ++i) {
    CopyBytes(Part(blocks, BlockOf(places, i)), output.data() + begins[call.After(i)]);
  }
  return absl::OkStatus();
}

absl::Status RingAllGather(const CollectiveCall& call, absl::Span<std::byte> output, absl::Span<const int64_t> begins) {
  const Rank next = RingNext(call.size, call.rank);
  const Rank previous = RingPrevious(call.size, call.rank);
  const Segment own = BlockOf(begins, call.rank);
  // Two ranks have nobody to pass anything on to.
  const int64_t chunk = call.size == 2 ? std::max<int64_t>(1, output.size()) : call.chunk_bytes;
  for (int64_t i = 0; i < ChunkCount(own.size(), chunk); ++i) {
    RETURN_IF_ERROR(call.Post(next, Part(output, ChunkOf(own, chunk, i))));
  }
  for (int step = 0; step < RingSteps(call.size); ++step) {
    const Segment in = BlockOf(begins, RingAllGatherStep(call.size, call.rank, step).in);
    for (int64_t i = 0; i < ChunkCount(in.size(), chunk); ++i) {
      const absl::Span<std::byte> part = Part(output, ChunkOf(in, chunk, i));
      RETURN_IF_ERROR(call.Receive(previous, part));
      if (step < RingSteps(call.size) - 1) {
        RETURN_IF_ERROR(call.Post(next, part));
      }
    }
  }
  return call.Flush();
}

absl::Status DirectAllGather(const CollectiveCall& call, absl::Span<std::byte> output,
                             absl::Span<const int64_t> begins) {
  for (int d = 1; d < call.size; ++d) {
    RETURN_IF_ERROR(call.Post(call.After(d), Part(output, BlockOf(begins, call.rank))));
  }
  for (int d = 1; d < call.size; ++d) {
    RETURN_IF_ERROR(call.Receive(call.Before(d), Part(output, BlockOf(begins, call.Before(d)))));
  }
  return call.Flush();
}

absl::Status ExchangeBlocks(const CollectiveCall& call, absl::Span<const std::byte> input,
                            absl::Span<const int64_t> input_begins, absl::Span<std::byte> output,
                            absl::Span<const int64_t> output_begins, bool direct) {
  const auto post = [&](int d) { return call.Post(call.After(d), Part(input, BlockOf(input_begins, call.After(d)))); };
  for (int d = 1; direct && d < call.size; ++d) RETURN_IF_ERROR(post(d));
  CopyBytes(Part(input, BlockOf(input_begins, call.rank)), output.data() + output_begins[call.rank]);
  for (int d = 1; d < call.size; ++d) {
    if (!direct) {
      RETURN_IF_ERROR(post(d));
    }
    RETURN_IF_ERROR(call.Receive(call.Before(d), Part(output, BlockOf(output_begins, call.Before(d)))));
  }
  return call.Flush();
}

absl::Status Rendezvous(const CollectiveCall& call) {
  const std::byte here{1};
  std::byte there{0};
  for (int step = 0; step < ExchangeSteps(call.size); ++step) {
    const ExchangeStep now = ExchangeStepOf(call.size, call.rank, step);
    RETURN_IF_ERROR(call.Post(now.to, absl::MakeConstSpan(&here, 1)));
    RETURN_IF_ERROR(call.Receive(now.from, absl::MakeSpan(&there, 1)));
  }
  return call.Flush();
}

}  // namespace farandole
