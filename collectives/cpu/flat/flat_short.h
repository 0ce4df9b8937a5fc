#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/core/group.h"
#include "collectives/cpu/flat/flat_slab.h"
#include "collectives/cpu/flat/flat_wait.h"
#include "collectives/cpu/flat/reduction.h"
#include "tools/base/instant.h"

namespace farandole {

// Allreduces of few bytes: each rank writes its tensor once where all can see it, and combines all when they are there.
// The two messages of a rank are used in turn: who begins the next but one has seen everybody begin the next one, so
// everybody has read this one.
class FlatShort {
 public:
  FlatShort(const GroupSpec& spec, const FlatSlab& slab, FlatWait& wait) : spec_(spec), slab_(slab), wait_(wait) {}

  // Shows this rank's tensor, at most FlatSlab::kShortBytes. Then Finish, or TryFinish until it says true.
  void Post(const Reduction& reduction, uint64_t what);
  absl::Status Finish(Instant deadline);
  // false: some rank has not come by `patience`.
  absl::StatusOr<bool> TryFinish(Instant patience);

 private:
  bool AllHere();
  absl::Status Combine();

  const GroupSpec& spec_;
  const FlatSlab& slab_;
  FlatWait& wait_;
  uint64_t number_ = 0;
  uint64_t what_ = 0;
  Rank here_ = 0;  // those below it have come
  Reduction reduction_ = {};
  std::vector<const void*> sources_;
};

}  // namespace farandole
