#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "collectives/core/group.h"
#include "collectives/transport/shm/common_memory.h"
#include "collectives/transport/shm/slab_layout.h"
#include "collectives/transport/shm/spsc_ring.h"
#include "collectives/transport/slab_source.h"
#include "tools/base/instant.h"

namespace farandole {

// A byte ring from every member of a group on one host to every other one, in common memory.
class ShmSlab {
 public:
  // Errors: those of CommonMemory::Open.
  static absl::StatusOr<std::unique_ptr<ShmSlab>> Open(const GroupSpec& spec, SlabSource& source, Instant deadline);

  // Who is there, and how to wake them.
  const CommonMemory& members() const { return *memory_; }

  SpscRingWriter WriterTo(Rank to) const;
  SpscRingReader ReaderFrom(Rank from) const;

 private:
  static_assert(sizeof(SpscRingControl) <= SlabLayout::kControlBytes);

  ShmSlab(std::unique_ptr<CommonMemory> memory, const SlabLayout& layout, Rank rank)
      : memory_(std::move(memory)), layout_(layout), rank_(rank) {}

  std::byte* At(int64_t offset) const { return memory_->payload() + offset; }
  SpscRingControl* ControlOf(Rank from, Rank to) const {
    return reinterpret_cast<SpscRingControl*>(At(layout_.ControlAt(from, to)));
  }

  const std::unique_ptr<CommonMemory> memory_;
  const SlabLayout layout_;
  const Rank rank_;
};

}  // namespace farandole
