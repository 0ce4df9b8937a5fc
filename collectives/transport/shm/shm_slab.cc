#include "collectives/transport/shm/shm_slab.h"

#include <utility>

#include "tools/base/status_macros.h"

namespace farandole {

absl::StatusOr<std::unique_ptr<ShmSlab>> ShmSlab::Open(const GroupSpec& spec, SlabSource& source, Instant deadline) {
  const SlabLayout layout(spec.size());
  ASSIGN_OR_RETURN(std::unique_ptr<CommonMemory> memory,
                   CommonMemory::Open(spec, source, {"rings", SlabLayout::kVersion}, layout.bytes(), deadline));
  return std::unique_ptr<ShmSlab>(new ShmSlab(std::move(memory), layout, spec.rank));
}

SpscRingWriter ShmSlab::WriterTo(Rank to) const {
  return SpscRingWriter(ControlOf(rank_, to), At(layout_.RingAt(rank_, to)), layout_.RingBytes(rank_, to));
}

SpscRingReader ShmSlab::ReaderFrom(Rank from) const {
  return SpscRingReader(ControlOf(from, rank_), At(layout_.RingAt(from, rank_)), layout_.RingBytes(from, rank_));
}

}  // namespace farandole
