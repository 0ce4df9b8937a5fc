#pragma once

#include <cstdint>
#include <vector>

#include "collectives/engine/wire.h"

namespace farandole {

// A request that all ranks have made, or joined.
struct ReadyRequest {
  Announcement asked;
  std::vector<int64_t> first_dims;  // as Response::first_dims
  std::vector<int64_t> joined;      // as Response::joined
};

// Requests that must not be split from each other: of one grouped call, or just one.
using FusionUnit = std::vector<ReadyRequest>;

struct FusionRules {
  int64_t threshold_bytes = 0;  // a unit is never split by it; 0: units are not joined
  bool groups_apart = false;    // a unit of several requests is not joined with other units
};

// Packs what is ready, in order, into operations: allreduces of one type, reduction and scaling run as one, as far as
// `rules` allow. What has a higher priority comes first. A later request may be taken into an
// earlier operation; the rest keeps its order. Only rank 0 decides, so all ranks see the same result. Responses have no
// sequence numbers yet.
std::vector<Response> Fuse(std::vector<FusionUnit> ready, const FusionRules& rules);

}  // namespace farandole
