#include "collectives/core/group.h"

#include "absl/strings/str_cat.h"

namespace farandole {

std::string Describe(const GroupSpec& spec, Rank rank) {
  if (rank < 0 || rank >= spec.size()) return absl::StrCat("rank ", rank);
  return absl::StrCat("rank ", rank, " on host ", spec.members[rank].host);
}

}  // namespace farandole
