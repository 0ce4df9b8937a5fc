#include "collectives/core/tuning.h"

namespace farandole {

absl::string_view Name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kAuto:
      return "auto";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kHalvingDoubling:
      return "halving_doubling";
    case Algorithm::kHierarchical:
      return "hierarchical";
  }
  return "unknown";
}

absl::optional<Algorithm> AlgorithmFromName(absl::string_view name) {
  for (Algorithm algorithm : kAlgorithms) {
    if (Name(algorithm) == name) return algorithm;
  }
  return absl::nullopt;
}

}  // namespace farandole
