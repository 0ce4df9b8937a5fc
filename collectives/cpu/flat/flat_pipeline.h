#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/core/finish_state.h"
#include "collectives/core/group.h"
#include "collectives/cpu/flat/flat_slab.h"
#include "collectives/cpu/flat/flat_wait.h"
#include "collectives/cpu/flat/reduction.h"
#include "tools/base/instant.h"

namespace farandole {

// Collectives in chunks through the areas of a flat slab. Each chunk goes through up to three stages on every rank:
//
//   stage     this rank's bytes for the others, into its own area, once the slot is free
//   publish   (reductions) the part that this rank owns, combined, once all have staged
//   take      what others have staged or published for this rank, once it is there
//
// A slot is free for the chunk kSlots later when all have taken this one. The stages of neighbouring chunks are
// interleaved, so that what one rank waits for the others have done meanwhile.
class FlatPipeline {
 public:
  FlatPipeline(const GroupSpec& spec, const FlatSlab& slab, FlatWait& wait, FinishState& finish)
      : spec_(spec), slab_(slab), wait_(wait), finish_(finish), sources_(spec.size()) {}

  // Of one rank's area that is used for a chunk; 0, or more than there is: as much as there is.
  void set_chunk_bytes(int64_t bytes) {
    area_bytes_ = bytes > 0 && bytes < FlatSlab::kAreaBytes ? std::max(bytes, FlatSlab::kLineBytes * 64) & -4096
                                                            : FlatSlab::kAreaBytes;
  }

  absl::Status AllReduce(const Reduction& reduction, Instant deadline);
  // begins[r]: of the share of rank r, in elements; one more: the end.
  absl::Status ReduceScatter(const Reduction& reduction, const std::vector<int64_t>& begins, Instant deadline);
  // The rest in bytes.
  absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                         const std::vector<int64_t>& begins, Instant deadline);
  absl::Status AllToAll(absl::Span<const std::byte> input, const std::vector<int64_t>& out,
                        absl::Span<std::byte> output, const std::vector<int64_t>& in, int64_t largest,
                        Instant deadline);
  absl::Status Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline);

 private:
  // What the stages of one chunk do; `index` counts the chunks of this collective. Take copies what is from `peer`, of
  // those that it Wants something from.
  struct Stages {
    virtual ~Stages() = default;
    virtual void Stage(int64_t index, uint64_t chunk) = 0;
    virtual void Publish(int64_t index, uint64_t chunk) {}
    virtual bool Wants(Rank peer) const { return true; }
    virtual void Take(int64_t index, uint64_t chunk, Rank peer) {}
  };
  struct AllReduceStages;
  struct ReduceScatterStages;
  struct AllGatherStages;
  struct AllToAllStages;
  struct BroadcastStages;

  // Staged and taken; staged, published and taken; staged and, by publishing, taken.
  enum class Shape { kGather, kReduce, kScatter };
  absl::Status Run(Stages& stages, Shape shape, int64_t chunks, Instant deadline);
  absl::Status StageOne(Stages& stages, int64_t index, Instant deadline);
  absl::Status PublishOne(Stages& stages, int64_t index, Instant deadline);
  absl::Status TakeOne(Stages& stages, Shape shape, int64_t index, Instant deadline);
  // Also that what is staged belongs to the same collective.
  absl::Status AwaitStaged(Rank rank, uint64_t chunk, Instant deadline);
  absl::Status Await(FlatSlab::Count FlatSlab::Progress::*what, Rank rank, uint64_t chunks, Instant deadline);
  void Report(FlatSlab::Count FlatSlab::Progress::*what, uint64_t chunks);

  const GroupSpec& spec_;
  const FlatSlab& slab_;
  FlatWait& wait_;
  FinishState& finish_;
  int64_t area_bytes_ = FlatSlab::kAreaBytes;
  uint64_t chunks_ = 0;  // of all collectives before the present one
  std::vector<const void*> sources_;
};

}  // namespace farandole
