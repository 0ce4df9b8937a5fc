#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "collectives/core/group.h"
#include "collectives/transport/shm/common_memory.h"
#include "collectives/transport/slab_source.h"
#include "tools/base/instant.h"

namespace farandole {

// The common memory of a flat communicator. For each rank, written by that rank only:
//
//   what it is doing    the number and the description of its present collective
//   progress            how many chunks it has staged, published and taken, since the beginning
//   short messages      two, used in turn, each with its number in front
//   areas               kSlots of kAreaBytes: what it stages and publishes of a chunk; chunk k uses slot k % kSlots
//
// Counts only grow, over all collectives, so nothing is ever reset.
class FlatSlab {
 public:
  static constexpr uint64_t kVersion = 2;
  static constexpr int kSlots = 4;
  static constexpr int64_t kAreaBytes = int64_t{256} << 10;
  static constexpr int64_t kLineBytes = 128;  // neighbouring cache lines are fetched together
  static constexpr int64_t kShortBytes = int64_t{32} << 10;

  // What a rank is doing, for those who wait for it in vain.
  struct alignas(kLineBytes) Doing {
    std::atomic<uint64_t> number;
    std::atomic<uint64_t> what;
  };
  // How far a rank is; each in a line of its own, since others poll it.
  struct alignas(kLineBytes) Count {
    std::atomic<uint64_t> chunks;
  };
  struct Progress {
    Count staged, published, taken;
    std::atomic<uint64_t> what[kSlots];  // of the collective whose chunk is staged in each slot
  };
  // A short message: the first bytes of it share the line with its number.
  struct alignas(kLineBytes) Short {
    std::atomic<uint64_t> number;
    std::atomic<uint64_t> what;
    std::byte data[kShortBytes];
  };

  // Errors: those of CommonMemory::Open.
  static absl::StatusOr<std::unique_ptr<FlatSlab>> Open(const GroupSpec& spec, SlabSource& source, Instant deadline) {
    auto memory = CommonMemory::Open(spec, source, {"flat", kVersion}, Bytes(spec.size()), deadline);
    if (!memory.ok()) return memory.status();
    return std::unique_ptr<FlatSlab>(new FlatSlab(*std::move(memory), spec.size()));
  }

  // All the memory of a group of `size`: size * (kSlots * kAreaBytes + 2 * kShortBytes) and some lines.
  static constexpr int64_t Bytes(int size) { return AreasAt(size) + size * kSlots * kAreaBytes; }

  const CommonMemory& members() const { return *memory_; }
  Doing& doing(Rank rank) const { return StationOf(rank).doing; }
  Progress& progress(Rank rank) const { return StationOf(rank).progress; }
  Short& short_message(Rank rank, uint64_t number) const { return StationOf(rank).shorts[number % 2]; }
  std::byte* area(Rank rank, uint64_t chunk) const {
    return memory_->payload() + AreasAt(size_) + (static_cast<int64_t>(chunk % kSlots) * size_ + rank) * kAreaBytes;
  }

 private:
  struct Station {
    Doing doing;
    Progress progress;
    Short shorts[2];
  };
  static constexpr int64_t AreasAt(int size) {
    return (size * static_cast<int64_t>(sizeof(Station)) + 4095) / 4096 * 4096;
  }

  FlatSlab(std::unique_ptr<CommonMemory> memory, int size) : memory_(std::move(memory)), size_(size) {}
  Station& StationOf(Rank rank) const { return reinterpret_cast<Station*>(memory_->payload())[rank]; }

  const std::unique_ptr<CommonMemory> memory_;
  const int size_;
};

}  // namespace farandole
