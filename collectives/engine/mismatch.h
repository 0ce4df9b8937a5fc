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

// Of two ranks that ask to send or receive under one name: what they disagree about, as a message for both; empty if
// one sends to the other what that one receives.
std::string PairDisagreement(const GroupSpec& spec, const Announcement& a, Rank of_a, const Announcement& b, Rank of_b);

// What cannot be done since `joined` has joined (a broadcast from it), as a message for those who asked; else empty.
std::string JoinedMistake(const GroupSpec& spec, const Announcement& asked, Rank joined);

// For an allgather on which all agree, when there is no memory that could hold the result; else empty.
std::string TooLargeToGather(const Announcement& asked, const std::vector<int64_t>& first_dims);

}  // namespace farandole
