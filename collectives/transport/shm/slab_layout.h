#pragma once

// Where the byte rings of a group on one host lie in its common memory. Pure arithmetic, the same on every member.
//
//   a control block per ordered pair of ranks | the bytes of each pair's ring
//
// All pairs have a ring, so a link needs no set-up. Rings between neighbours, where long messages go, are large, the
// others small. Memory that is never touched costs nothing: a memfd is sparse.

#include <cstdint>

#include "collectives/core/group.h"

namespace farandole {

class SlabLayout {
 public:
  static constexpr uint64_t kVersion = 2;  // changes with everything that is laid out here
  static constexpr int64_t kControlBytes = 256;
  static constexpr int64_t kPageBytes = 4096;
  static constexpr int64_t kNeighbourRingBytes = 512 << 10;  // powers of two
  static constexpr int64_t kOtherRingBytes = 32 << 10;

  explicit constexpr SlabLayout(int size) : size_(size) {}

  constexpr int64_t ControlAt(Rank from, Rank to) const { return (int64_t{from} * size_ + to) * kControlBytes; }
  constexpr int64_t RingBytes(Rank from, Rank to) const {
    return to == (from + 1) % size_ ? kNeighbourRingBytes : kOtherRingBytes;
  }
  constexpr int64_t RingAt(Rank from, Rank to) const {
    // The rings of one sender lie together: its neighbour's first, then the others by distance.
    const int distance = (to - from + size_) % size_;
    return RingsBegin() + from * SenderBytes() +
           (distance <= 1 ? 0 : kNeighbourRingBytes + (distance - 2) * kOtherRingBytes);
  }
  constexpr int64_t bytes() const { return RingsBegin() + size_ * SenderBytes(); }

 private:
  constexpr int64_t RingsBegin() const { return (ControlAt(size_, 0) + kPageBytes - 1) / kPageBytes * kPageBytes; }
  constexpr int64_t SenderBytes() const { return size_ < 2 ? 0 : kNeighbourRingBytes + (size_ - 2) * kOtherRingBytes; }

  int size_;
};

}  // namespace farandole
