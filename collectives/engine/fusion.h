#pragma once

#include <cstdint>
#include <vector>

#include "collectives/engine/wire.h"

namespace farandole {

// Requests that must not be split from each other: of one grouped call, or just one.
using FusionUnit = std::vector<Announcement>;

// Packs what is ready, in order, into operations: allreduces of one type, reduction and scaling run as one, up to
// `threshold_bytes` (a unit is never split by it; 0: units are not joined). A later request may be taken into an
// earlier operation; the rest keeps its order. Only rank 0 decides, so all ranks see the same result. Responses have no
// sequence numbers yet.
std::vector<Response> Fuse(const std::vector<FusionUnit>& ready, int64_t threshold_bytes);

}  // namespace farandole
