#include "worker/runtime/process_set_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace farandole {

ProcessSetTable::ProcessSetTable(int size) : size_(size) {
  std::vector<Rank> all(size);
  std::iota(all.begin(), all.end(), 0);
  sets_[0] = {std::move(all), 0};
}

absl::StatusOr<std::vector<Rank>> ProcessSetTable::Check(std::vector<Rank> ranks) const {
  std::sort(ranks.begin(), ranks.end());
  if (ranks.empty()) return absl::InvalidArgumentError("a process set needs at least one rank");
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the process set of ranks ", RanksText(ranks), " has one twice"));
  }
  if (ranks.front() < 0 || ranks.back() >= size_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the process set of ranks ", RanksText(ranks), ": there are only ranks 0 to ", size_ - 1));
  }
  for (const auto& [id, set] : sets_) {
    // The first words are the original's.
    if (set.ranks == ranks) {
      return absl::InvalidArgumentError(absl::StrCat("Attempted to add a duplicate process set: ranks ",
                                                     RanksText(ranks), " are process set ", id, " already"));
    }
  }
  return ranks;
}

int ProcessSetTable::Add(std::vector<Rank> ranks) {
  int id = static_cast<int>(sets_.size());
  if (!free_.empty()) {
    id = free_.front();
    free_.pop_front();
  }
  sets_[id] = {std::move(ranks), ++groups_};
  return id;
}

absl::Status ProcessSetTable::CheckRemovable(int id) const {
  if (id == 0) return absl::InvalidArgumentError("process set 0, of all ranks, cannot be removed");
  if (Find(id) == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no process set ", id));
  return absl::OkStatus();
}

void ProcessSetTable::Remove(int id) {
  if (sets_.erase(id) > 0) free_.push_back(id);
}

const ProcessSetTable::Set* ProcessSetTable::Find(int id) const {
  const auto it = sets_.find(id);
  return it == sets_.end() ? nullptr : &it->second;
}

std::vector<int> ProcessSetTable::ids() const {
  std::vector<int> ids;
  for (const auto& [id, set] : sets_) ids.push_back(id);
  return ids;
}

absl::optional<Rank> PlaceIn(const std::vector<Rank>& ranks, Rank rank) {
  const auto it = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (it == ranks.end() || *it != rank) return absl::nullopt;
  return static_cast<Rank>(it - ranks.begin());
}

std::string RanksText(const std::vector<Rank>& ranks) { return absl::StrJoin(ranks, ", "); }

}  // namespace farandole
