#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/core/communicator.h"
#include "collectives/core/group.h"
#include "collectives/transport/slab_source.h"
#include "tools/base/instant.h"

namespace farandole {

// Collectives of ranks that share memory, by the flat schedule (schedule/flat_schedule.h).
//
//   allreduce      up to FlatSlab::kShortBytes / size: everybody writes its tensor once, everybody combines all, in
//   rank
//                  order. Else in chunks, several in flight: each rank stages the parts that others own, the owner of a
//                  part combines its own tensor with what is staged and writes the result to the slab and to its output
//                  at once, the others copy it out
//   reducescatter  the same without the last copy
//   allgather, broadcast, alltoall   in chunks: staged by who has it, copied out by who wants it
//   barrier        an allreduce of nothing
//   adasum, send, receive   over byte rings of their own (TransportCommunicator on ShmTransport)
//
// A waiting rank spins for some microseconds, unless there are more ranks than processors, and then sleeps. A member
// that ends in order is reported as lost to those who wait for it. A process that dies, or is stopped, does not show in
// the memory: its agent sees the one, the driver the other, and both end in Abort().
//
// What outlives what (the rules of replay): an allreduce changes the output of a rank only by results, a part at a
// time, and a result stands in the slab until all members have taken it (R1, R3). Who has begun to combine a part
// finishes and publishes it before it looks whether it was aborted (R2). The slab belongs to one generation (R10). The
// others write their output from what the slab holds, and keep no more than that.
//
// Memory: FlatSlab::Bytes(size) in all for the group, 1.06 MiB for each rank, touched as far as it is used.
//
// `source` is used during the call only. Errors: those of CommonMemory::Open; InvalidArgument for more than
// kFlatSizeMax ranks.
inline constexpr int kFlatSizeMax = 256;  // beyond it a rank's share of an area is too small to be worth it
absl::StatusOr<std::unique_ptr<Communicator>> CreateFlatCommunicator(const GroupSpec& spec, SlabSource& source,
                                                                     Instant deadline);

}  // namespace farandole
