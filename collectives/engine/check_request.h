#pragma once

#include "absl/status/status.h"
#include "collectives/core/group.h"
#include "collectives/engine/request.h"

namespace farandole {

// What a rank may ask for by itself, whatever the others do: InvalidArgument, naming the tensor, for anything else.
// Pure.
absl::Status CheckRequest(int size, Rank rank, const Request& request);

}  // namespace farandole
