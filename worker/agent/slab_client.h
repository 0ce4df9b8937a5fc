#pragma once

#include <memory>
#include <string>

#include "collectives/transport/slab_source.h"

namespace farandole {

// A worker's end of SlabBroker: every Open is a connection of its own to the abstract unix socket `socket`, which must
// belong to this user or root (PermissionDenied otherwise). Unavailable: nobody listens there; DeadlineExceeded: no
// answer in time; Internal: an answer that makes no sense; otherwise as the broker says.
std::unique_ptr<SlabSource> ConnectSlabs(std::string socket);

}  // namespace farandole
