#pragma once

#include <string>
#include <vector>

#include "collectives/core/group.h"
#include "collectives/engine/wire.h"

namespace farandole {

// What the ranks disagree about under one name, as a message for all of them: it begins with the original's words
// ("Mismatched data types", ...), then names the tensor, the ranks on both sides and both descriptions. Empty when they
// agree, or for what one rank asks wrongly by itself (a scalar in an allgather): the same message for all ranks too.
//
// `asked[r]` is rank r's announcement; all have the same name.
std::string FindMismatch(const GroupSpec& spec, const std::vector<Announcement>& asked);

}  // namespace farandole
