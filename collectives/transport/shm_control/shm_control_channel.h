#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/core/group.h"
#include "collectives/transport/control_channel.h"
#include "collectives/transport/slab_source.h"
#include "tools/base/instant.h"

namespace farandole {

// The control channel of a group on one host: messages go through byte rings in common memory, so that one costs less
// than a microsecond while the other side looks. It has SharedWaiting.
//
// Memory does not show that a process has died. `sentinel` does: a channel of the same group over which nothing is ever
// said; a thread waits for what it loses. Null: only members that leave in order are reported as lost.
//
// `source` is used during the call only. Errors: those of CommonMemory::Open.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateShmControlChannel(const GroupSpec& spec, SlabSource& source,
                                                                        std::unique_ptr<ControlChannel> sentinel,
                                                                        Instant deadline);

}  // namespace farandole
