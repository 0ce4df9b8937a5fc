#include "collectives/cpu/flat/flat_wait.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collectives/transport/checks.h"
#include "tools/base/clock.h"

namespace farandole {

absl::Status FlatWait::DifferentCollectives(Rank rank) const {
  return absl::InternalError(absl::StrCat(Describe(spec_, rank), " and ", Describe(spec_, spec_.rank),
                                          " have called different collectives (number ", number_, ")"));
}

absl::Status FlatWait::Obstacle() const {
  for (Rank rank = 0; rank < spec_.size(); ++rank) {
    const FlatSlab::Doing& doing = slab_.doing(rank);
    const uint64_t number = doing.number.load();
    if (number == number_ && doing.what.load() != what_) return DifferentCollectives(rank);
  }
  for (Rank rank = 0; rank < spec_.size(); ++rank) {
    if (rank != spec_.rank && slab_.members().HasLeft(rank)) return PeerLost(spec_, rank, "it has left the group");
  }
  return absl::OkStatus();
}

bool FlatWait::Passed(Instant deadline) { return !deadline.is_infinite() && Now() >= deadline; }

absl::Status FlatWait::TooLate() const {
  std::vector<std::string> late;
  for (Rank rank = 0; rank < spec_.size(); ++rank) {
    if (slab_.doing(rank).number.load() < number_) late.push_back(Describe(spec_, rank));
  }
  return absl::DeadlineExceededError(absl::StrCat("the deadline passed while waiting for ",
                                                  late.empty() ? "the other ranks" : absl::StrJoin(late, ", ")));
}

}  // namespace farandole
