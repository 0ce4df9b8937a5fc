#include "collectives/engine/mismatch.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace farandole {
namespace {

// "ALLREDUCE of float32 [3] (average)".
std::string Description(const Announcement& asked) {
  if (asked.kind == OperationKind::kBarrier) return std::string(Name(asked.kind));
  std::string text = absl::StrCat(Name(asked.kind), " of ", Name(asked.dtype), " ", ShapeText(asked.shape));
  if (asked.kind == OperationKind::kAllReduce) absl::StrAppend(&text, " (", Name(asked.op));
  if (asked.kind == OperationKind::kAllReduce && (asked.prescale != 1.0 || asked.postscale != 1.0)) {
    absl::StrAppend(&text, ", scaled by ", asked.prescale, " before and ", asked.postscale, " after");
  }
  if (asked.kind == OperationKind::kAllReduce) absl::StrAppend(&text, ")");
  if (asked.kind == OperationKind::kBroadcast) absl::StrAppend(&text, " from rank ", asked.root);
  if (asked.group != 0) absl::StrAppend(&text, ", one of a group of ", asked.group_size);
  return text;
}

// "rank 1 on host b asks" or "ranks 1, 3 ask".
std::string Subject(const GroupSpec& spec, const std::vector<Rank>& ranks) {
  if (ranks.size() == 1) return absl::StrCat(Describe(spec, ranks[0]), " asks for ");
  return absl::StrCat("ranks ", absl::StrJoin(ranks, ", "), " ask for ");
}

using Same = std::function<bool(const Announcement&, const Announcement&)>;

// The ranks like rank 0, and those like the first rank that differs from it.
std::string Sides(const GroupSpec& spec, const std::vector<Announcement>& asked, const Same& same) {
  std::vector<Rank> first, second;
  const Announcement* other = nullptr;
  for (Rank rank = 0; rank < static_cast<Rank>(asked.size()); ++rank) {
    if (same(asked[0], asked[rank])) {
      first.push_back(rank);
    } else if (other == nullptr || same(*other, asked[rank])) {
      if (other == nullptr) other = &asked[rank];
      second.push_back(rank);
    }
  }
  if (other == nullptr) return "";
  return absl::StrCat("tensor ", asked[0].name, ": ", Subject(spec, first), Description(asked[0]), ", ",
                      Subject(spec, second), Description(*other), ".");
}

bool SameRowShape(const Announcement& a, const Announcement& b) {
  if (a.shape.size() != b.shape.size()) return false;
  for (size_t i = 1; i < a.shape.size(); ++i) {
    if (a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

struct Rule {
  std::string words;  // the original's
  Same same;
};

// In the order in which the original checks.
std::vector<Rule> Rules(OperationKind kind) {
  std::vector<Rule> rules = {
      {"Mismatched data types", [](auto& a, auto& b) { return a.dtype == b.dtype; }},
      {"Mismatched operations", [](auto& a, auto& b) { return a.kind == b.kind; }},
  };
  const std::string shapes = absl::StrCat("Mismatched ", Name(kind), " tensor shapes");
  if (kind == OperationKind::kAllReduce || kind == OperationKind::kBroadcast) {
    rules.push_back({shapes, [](auto& a, auto& b) { return a.shape == b.shape; }});
  }
  if (kind == OperationKind::kAllGather) rules.push_back({shapes, SameRowShape});
  if (kind == OperationKind::kAllReduce) {
    rules.push_back({"Mismatched prescale and/or postscale factors",
                     [](auto& a, auto& b) { return a.prescale == b.prescale && a.postscale == b.postscale; }});
    rules.push_back({"Mismatched reduction operation", [](auto& a, auto& b) { return a.op == b.op; }});
  }
  if (kind == OperationKind::kBroadcast) {
    rules.push_back({"Mismatched BROADCAST root ranks", [](auto& a, auto& b) { return a.root == b.root; }});
  }
  rules.push_back(
      {"Mismatched groups", [](auto& a, auto& b) { return a.group == b.group && a.group_size == b.group_size; }});
  return rules;
}

}  // namespace

std::string FindMismatch(const GroupSpec& spec, const std::vector<Announcement>& asked) {
  for (const Rule& rule : Rules(asked[0].kind)) {
    const std::string sides = Sides(spec, asked, rule.same);
    if (!sides.empty()) return absl::StrCat(rule.words, ": ", sides);
  }
  if (asked[0].kind == OperationKind::kAllGather && asked[0].shape.empty()) {
    return absl::StrCat(
        "tensor ", asked[0].name,
        ": a scalar (0 dimensions) cannot be gathered: give it a first dimension, for example by reshape(1).");
  }
  return "";
}

}  // namespace farandole
