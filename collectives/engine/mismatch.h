#pragma once

#include <string>
#include <vector>

#include "collectives/core/group.h"
#include "collectives/engine/wire.h"

namespace farandole {

// Whether two ranks ask for the same operation under one name.
bool Agree(const Announcement& a, const Announcement& b);

// What they disagree about, as a message for all ranks: it begins with the original's words ("Mismatched data types",
// ...), then names the tensor, the ranks on both sides and both descriptions. `first` is what `agreed` (not empty) ask
// for; `other` is asked for by `rank`; they do not Agree.
std::string Disagreement(const GroupSpec& spec, const Announcement& first, const std::vector<Rank>& agreed,
                         const Announcement& other, Rank rank);

// What no rank may ask for, whatever the others do (a scalar in an allgather), as a message for all ranks; else empty.
std::string Mistake(const GroupSpec& spec, const Announcement& asked, Rank rank);

// For an allgather on which all agree, when there is no memory that could hold the result; else empty.
std::string TooLargeToGather(const Announcement& asked, const std::vector<int64_t>& first_dims);

}  // namespace farandole
