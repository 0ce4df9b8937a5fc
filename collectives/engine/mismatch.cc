#include "collectives/engine/mismatch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace farandole {
namespace {

// In the order in which the original checks.
enum class Difference { kNone, kType, kKind, kShape, kScale, kReduction, kRoot, kGroup };

// A NaN is the same factor as another NaN.
bool SameFactor(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool SameShape(const Announcement& a, const Announcement& b) {
  if (a.kind == OperationKind::kBarrier) return true;
  if (a.kind != OperationKind::kAllGather && a.kind != OperationKind::kAllToAll) return a.shape == b.shape;
  if (a.shape.size() != b.shape.size()) return false;
  return a.shape.empty() || std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1);
}

bool HasData(const Announcement& asked) {
  return asked.kind != OperationKind::kBarrier && asked.kind != OperationKind::kJoin;
}

bool Reduces(const Announcement& asked) {
  return asked.kind == OperationKind::kAllReduce || asked.kind == OperationKind::kReduceScatter;
}

bool HasFirstDimension(const Announcement& asked) {
  return asked.kind == OperationKind::kAllGather || asked.kind == OperationKind::kAllToAll ||
         asked.kind == OperationKind::kReduceScatter;
}

Difference Compare(const Announcement& a, const Announcement& b) {
  if (HasData(a) && HasData(b) && a.dtype != b.dtype) return Difference::kType;
  if (a.kind != b.kind) return Difference::kKind;
  if (!SameShape(a, b)) return Difference::kShape;
  if (Reduces(a)) {
    if (!SameFactor(a.prescale, b.prescale) || !SameFactor(a.postscale, b.postscale)) return Difference::kScale;
    if (a.op != b.op) return Difference::kReduction;
  }
  if (a.kind == OperationKind::kBroadcast && a.root != b.root) return Difference::kRoot;
  if (a.group != b.group || a.group_size != b.group_size) return Difference::kGroup;
  return Difference::kNone;
}

// The first words are the original's; scripts look for them.
std::string Words(Difference difference, OperationKind kind) {
  switch (difference) {
    case Difference::kNone:
      return "";
    case Difference::kType:
      return "Mismatched data types";
    case Difference::kKind:
      return "Mismatched operations";
    case Difference::kShape:
      return absl::StrCat("Mismatched ", Name(kind), " tensor shapes");
    case Difference::kScale:
      return "Mismatched prescale and/or postscale factors";
    case Difference::kReduction:
      return "Mismatched reduction operation";
    case Difference::kRoot:
      return "Mismatched BROADCAST root ranks";
    case Difference::kGroup:
      return "Mismatched groups";
  }
  return "";
}

// "ALLREDUCE of float32 [3] (average)".
std::string Description(const Announcement& asked) {
  if (!HasData(asked)) return std::string(Name(asked.kind));
  std::string text = absl::StrCat(Name(asked.kind), " of ", Name(asked.dtype), " ", ShapeText(asked.shape));
  if (Reduces(asked)) {
    const bool scaled = asked.prescale != 1.0 || asked.postscale != 1.0;
    absl::StrAppend(&text, " (", Name(asked.op));
    if (scaled) absl::StrAppend(&text, ", scaled by ", asked.prescale, " before and ", asked.postscale, " after");
    absl::StrAppend(&text, ")");
  }
  if (asked.kind == OperationKind::kSend) absl::StrAppend(&text, " to rank ", asked.root);
  if (asked.kind == OperationKind::kReceive) absl::StrAppend(&text, " from rank ", asked.root);
  if (asked.kind == OperationKind::kBroadcast) absl::StrAppend(&text, " from rank ", asked.root);
  if (asked.group != 0) absl::StrAppend(&text, ", one of a group of ", asked.group_size);
  return text;
}

// "rank 1 on host b asks for " or "ranks 1, 3 ask for ".
std::string Subject(const GroupSpec& spec, const std::vector<Rank>& ranks) {
  constexpr size_t kNamedMax = 16;
  if (ranks.size() == 1) return absl::StrCat(Describe(spec, ranks[0]), " asks for ");
  const size_t named = std::min(ranks.size(), kNamedMax);
  const std::string more = ranks.size() > named ? absl::StrCat(" and ", ranks.size() - named, " more") : "";
  return absl::StrCat("ranks ", absl::StrJoin(ranks.begin(), ranks.begin() + named, ", "), more, " ask for ");
}

}  // namespace

bool Agree(const Announcement& a, const Announcement& b) { return Compare(a, b) == Difference::kNone; }

std::string Disagreement(const GroupSpec& spec, const Announcement& first, const std::vector<Rank>& agreed,
                         const Announcement& other, Rank rank) {
  const Difference difference = Compare(first, other);
  const bool same_size = difference == Difference::kGroup && first.group_size == other.group_size;
  return absl::StrCat(Words(difference, first.kind), ": tensor ", first.name, ": ", Subject(spec, agreed),
                      Description(first), ", ", Subject(spec, {rank}), Description(other),
                      same_size ? " with other members." : ".");
}

std::string Mistake(const GroupSpec& spec, const Announcement& asked, Rank rank) {
  if (!HasFirstDimension(asked) || !asked.shape.empty()) return "";
  return absl::StrCat("Process-set rank ", rank == 0 ? "zero" : absl::StrCat(rank), " tried to ", Name(asked.kind),
                      " a rank-zero tensor: tensor ", asked.name, ": ", Subject(spec, {rank}), Description(asked),
                      ", and a scalar has no first dimension: give it one, for example by reshape(1).");
}

std::string PairDisagreement(const GroupSpec& spec, const Announcement& a, Rank of_a, const Announcement& b,
                             Rank of_b) {
  const bool other_way = (a.kind == OperationKind::kSend && b.kind == OperationKind::kReceive) ||
                         (a.kind == OperationKind::kReceive && b.kind == OperationKind::kSend);
  const bool same_data = a.dtype == b.dtype && a.shape == b.shape;
  if (other_way && same_data && a.root == of_b && b.root == of_a) return "";
  return absl::StrCat(!other_way           ? "Mismatched operations"
                      : a.dtype != b.dtype ? "Mismatched data types"
                      : a.shape != b.shape ? "Mismatched SEND tensor shapes"
                                           : "Mismatched SEND ranks",
                      ": tensor ", a.name, ": ", Subject(spec, {of_a}), Description(a), ", ", Subject(spec, {of_b}),
                      Description(b), ".");
}

std::string JoinedMistake(const GroupSpec& spec, const Announcement& asked, Rank joined) {
  const bool needs_it = asked.kind == OperationKind::kBroadcast || asked.kind == OperationKind::kSend ||
                        asked.kind == OperationKind::kReceive;
  if (!needs_it || asked.root != joined) return "";
  return absl::StrCat("tensor ", asked.name, ": ", Description(asked), ": ", Describe(spec, joined),
                      " has joined (hvd.join()) and takes no part any more");
}

std::string TooLargeToGather(const Announcement& asked, const std::vector<int64_t>& first_dims) {
  if (GatheredBytes(asked.shape, asked.dtype, first_dims).has_value()) return "";
  return absl::StrCat("tensor ", asked.name, ": the ", Description(asked), " of all ", first_dims.size(),
                      " ranks together is larger than any memory");
}

}  // namespace farandole
