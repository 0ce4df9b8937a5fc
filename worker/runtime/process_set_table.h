#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "collectives/core/group.h"

namespace farandole {

// Which process sets a generation has: numbers, and who is in them. The same on all ranks, since all make the same
// changes in the same order. Set 0 is all ranks, always. Pure.
class ProcessSetTable {
 public:
  struct Set {
    std::vector<Rank> ranks;  // of the whole group, ascending
    uint32_t group = 0;       // GroupSpec::group: never used twice in a generation
  };

  // Of a group of `size`.
  explicit ProcessSetTable(int size);

  // The ranks of a set that may be added, sorted. InvalidArgument: none, one twice, one that is not in the group, or
  // the same ranks as a set that exists.
  absl::StatusOr<std::vector<Rank>> Check(std::vector<Rank> ranks) const;

  // Adds what Check has returned; its number. Numbers count up; those of removed sets are used again first, the longest
  // free one first.
  int Add(std::vector<Rank> ranks);

  // InvalidArgument: there is none of this number, or it is 0.
  absl::Status CheckRemovable(int id) const;
  void Remove(int id);

  // Null: there is none of this number.
  const Set* Find(int id) const;
  std::vector<int> ids() const;

 private:
  const int size_;
  std::map<int, Set> sets_;
  std::deque<int> free_;
  uint32_t groups_ = 0;  // given out so far
};

// The place of `rank` among `ranks`; nullopt if it is none of them.
absl::optional<Rank> PlaceIn(const std::vector<Rank>& ranks, Rank rank);

// "0, 2".
std::string RanksText(const std::vector<Rank>& ranks);

}  // namespace farandole
