#pragma once

// The ring: every rank sends to the next one and receives from the previous one only. Pure arithmetic.
//
// A tensor is cut into as many segments as there are ranks. In the reduce-scatter half, segment s starts at rank s and
// goes once around; each rank that it visits adds its own part, so rank s-1 holds the whole sum after size-1 steps. In
// the allgather half the finished segments go around once more and replace what they find. With 3 ranks, the segment
// that leaves each rank in each step:
//
//                       reduce-scatter 0   1     allgather 0   1
//   rank 0 -> rank 1                   0   2               1   0
//   rank 1 -> rank 2                   1   0               2   1
//   rank 2 -> rank 0                   2   1               0   2
//
// Each rank sends 2 (size-1) / size of the tensor: no algorithm sends less.

#include "collectives/core/group.h"

namespace farandole {

// The neighbours.
constexpr Rank RingNext(int size, Rank rank) { return rank + 1 == size ? 0 : rank + 1; }
constexpr Rank RingPrevious(int size, Rank rank) { return rank == 0 ? size - 1 : rank - 1; }

// The numbers of the segments that a rank sends to its next and receives from its previous in one step.
struct RingStep {
  int out = 0;
  int in = 0;
  friend constexpr bool operator==(RingStep, RingStep) = default;
};

// Steps of each half.
constexpr int RingSteps(int size) { return size - 1; }

namespace internal {
// `start` is the segment that `rank` sends first.
constexpr RingStep RingStepFrom(int size, int start, int step) {
  const int out = (start - step + size) % size;
  return {out, RingPrevious(size, out)};
}
}  // namespace internal

// Reduce-scatter, 0 <= step < RingSteps: `out` goes as it is now, `in` is combined with this rank's own.
constexpr RingStep RingReduceScatterStep(int size, Rank rank, int step) {
  return internal::RingStepFrom(size, rank, step);
}

// The segment that is complete at `rank` after the reduce-scatter.
constexpr int RingOwnedSegment(int size, Rank rank) { return RingNext(size, rank); }

// Allgather of segments that stand where RingOwnedSegment says: `in` replaces what is there.
constexpr RingStep RingGatherOwnedStep(int size, Rank rank, int step) {
  return internal::RingStepFrom(size, RingOwnedSegment(size, rank), step);
}

// Allgather of blocks that start at the rank of their number.
constexpr RingStep RingAllGatherStep(int size, Rank rank, int step) { return internal::RingStepFrom(size, rank, step); }

}  // namespace farandole
