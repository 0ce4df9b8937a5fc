#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace farandole {

// The ways to run a collective. Not each communicator knows each of them, nor does each collective have each: what does
// not apply is chosen as kAuto does.
enum class Algorithm : uint8_t {
  kAuto = 0,             // by cost, from the size of the message and of the group
  kDirect = 1,           // everybody's to everybody: for messages so small that a step costs more than their bytes
  kRing = 2,             // neighbours only; the fewest bytes
  kHalvingDoubling = 3,  // recursive: log2(n) steps with the bytes of the ring
  kHierarchical = 4,     // inside the hosts first, then between them
};

inline constexpr Algorithm kAlgorithms[] = {Algorithm::kAuto, Algorithm::kDirect, Algorithm::kRing,
                                            Algorithm::kHalvingDoubling, Algorithm::kHierarchical};

// "auto", "direct", "ring", "halving_doubling", "hierarchical": as people write them (FARANDOLE_ALGORITHM).
absl::string_view Name(Algorithm algorithm);
absl::optional<Algorithm> AlgorithmFromName(absl::string_view name);

// How a communicator works, as far as it can be chosen while it runs. All ranks must use the same for one collective.
struct CollectiveTuning {
  Algorithm allreduce = Algorithm::kAuto;
  Algorithm allgather = Algorithm::kAuto;
  int64_t chunk_bytes = 0;  // what is moved at a time; 0: the communicator's own choice

  friend bool operator==(const CollectiveTuning&, const CollectiveTuning&) = default;
};

}  // namespace farandole
