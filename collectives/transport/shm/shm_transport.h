#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/core/group.h"
#include "collectives/transport/slab_source.h"
#include "collectives/transport/transport.h"
#include "tools/base/instant.h"

namespace farandole {

// The transport of a group whose members are all on one host: byte rings in common memory (slab_layout.h). A waiting
// rank spins for some microseconds, unless there are more ranks than processors, and then sleeps.
//
// A member that ends in order (its transport is destroyed) is reported as lost to those who wait for it. A process that
// dies, or is stopped, does not show in the memory: its agent sees the one, the driver the other, and both end in
// Abort().
//
// `source` is used during the call only. Errors: those of the source, and of ShmSlab::Open.
absl::StatusOr<std::unique_ptr<Transport>> CreateShmTransport(const GroupSpec& spec, SlabSource& source,
                                                              Instant deadline);

}  // namespace farandole
