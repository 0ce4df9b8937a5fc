#include "collectives/engine/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collectives/engine/mismatch.h"

namespace farandole {
namespace {

// Between two lines about one name, however short the limit is.
constexpr absl::Duration kGapMin = absl::Seconds(1);

}  // namespace

Coordinator::Coordinator(CoordinatorConfig config, GroupSpec spec) : config_(config), spec_(std::move(spec)) {}

void Coordinator::Add(Instant now, Rank from, RequestList list) {
  if (closed()) return;
  for (Announcement& announcement : list.requests) Announce(now, from, std::move(announcement));
  ReleaseGroups();
  if (!list.failure.empty()) {
    Close(absl::StatusCode::kUnavailable, absl::StrCat(Describe(spec_, from), " cannot go on: ", list.failure));
  } else if (list.leaving) {
    // The first words are the original's; scripts look for them.
    Close(absl::StatusCode::kAborted, absl::StrCat("Horovod has been shut down: ", Describe(spec_, from),
                                                   " has left the group (hvd.shutdown(), or its end)"));
  }
}

void Coordinator::Lost(Rank rank, const std::string& how) {
  Close(absl::StatusCode::kUnavailable, absl::StrCat(Describe(spec_, rank), " was lost: ", how));
}

void Coordinator::Close(absl::StatusCode code, std::string reason) {
  if (closed()) return;
  closed_ = code;
  closed_reason_ = std::move(reason);
}

void Coordinator::Announce(Instant now, Rank from, Announcement announcement) {
  const auto [it, is_new] = uses_.try_emplace(announcement.name);
  Use& use = it->second;
  if (is_new) {
    use.asked.resize(spec_.size(), false);
    WaitsSince(now, use);
  } else if (use.asked[from]) {
    return AskAgain(now, from, std::move(announcement), use);
  }
  use.asked[from] = true;
  ++use.count;
  if (!use.refusal.empty()) {
    Tell(use, {from});
  } else {
    if (from == 0 && announcement.group != 0) {
      use.group = announcement.group;
      ++groups_[use.group].unsettled;
    }
    if (is_new) use.first = announcement;
    Judge(from, announcement, use);
  }
  if (use.count == spec_.size()) End(it);
}

void Coordinator::AskAgain(Instant now, Rank from, Announcement announcement, Use& use) {
  const bool waits = use.refusal.empty() || std::any_of(use.next.begin(), use.next.end(),
                                                        [from](const auto& next) { return next.first == from; });
  if (waits) {
    return Close(absl::StatusCode::kInternal, absl::StrCat(Describe(spec_, from), " asked twice for ",
                                                           announcement.name, " before it was answered"));
  }
  if (use.next.empty()) WaitsSince(now, use);
  use.next.emplace_back(from, std::move(announcement));
}

void Coordinator::Judge(Rank from, const Announcement& announcement, Use& use) {
  if (!Agree(use.first, announcement)) {
    std::vector<Rank> agreed;
    for (Rank rank = 0; rank < spec_.size(); ++rank) {
      if (use.asked[rank] && rank != from) agreed.push_back(rank);
    }
    return Refuse(Disagreement(spec_, use.first, agreed, announcement, from), use);
  }
  if (std::string mistake = Mistake(spec_, announcement, from); !mistake.empty()) {
    return Refuse(std::move(mistake), use);
  }
  if (announcement.kind != OperationKind::kAllGather) return;
  use.first_dims.resize(spec_.size(), 0);
  use.first_dims[from] = announcement.shape[0];
  if (use.count < spec_.size()) return;
  if (std::string text = TooLargeToGather(announcement, use.first_dims); !text.empty()) Refuse(std::move(text), use);
}

void Coordinator::Refuse(std::string text, Use& use) {
  use.refusal = std::move(text);
  Settle(use);
  std::vector<int64_t> ranks;
  for (Rank rank = 0; rank < spec_.size(); ++rank) {
    if (use.asked[rank]) ranks.push_back(rank);
  }
  Tell(use, std::move(ranks));
}

void Coordinator::Tell(const Use& use, std::vector<int64_t> ranks) {
  Response response;
  response.kind = use.first.kind;
  response.names.push_back(use.first.name);
  response.refusal = use.refusal;
  response.refused = std::move(ranks);
  refused_.push_back(std::move(response));
}

// Every rank has asked.
void Coordinator::End(Uses::iterator it) {
  Use use = std::move(it->second);
  uses_.erase(it);
  if (use.refusal.empty()) {
    if (use.first.kind == OperationKind::kAllGather) first_dims_[use.first.name] = std::move(use.first_dims);
    const uint64_t group = use.group;
    Settle(use);
    if (group == 0) {
      ready_.push_back({std::move(use.first)});
    } else {
      groups_[group].ready.push_back(std::move(use.first));
    }
  }
  if (uses_.empty()) next_stall_ = Instant::Infinite();
  // A group that rank 0 has begun by one of these could not be complete before now: who completes another member of it
  // has asked for this name in the same list.
  for (auto& [rank, announcement] : use.next) Announce(use.since, rank, std::move(announcement));
}

void Coordinator::Settle(Use& use) {
  if (use.group == 0) return;
  --groups_[use.group].unsettled;
  settled_groups_.push_back(std::exchange(use.group, 0));
}

void Coordinator::ReleaseGroups() {
  for (const uint64_t id : std::exchange(settled_groups_, {})) {
    const auto it = groups_.find(id);
    if (it == groups_.end() || it->second.unsettled > 0) continue;
    if (!it->second.ready.empty()) ready_.push_back(std::move(it->second.ready));
    groups_.erase(it);
  }
}

ResponseList Coordinator::Take() {
  ResponseList list;
  if (closing_taken_) return list;
  list.responses = std::exchange(refused_, {});
  for (Response& response : Fuse(std::exchange(ready_, {}), config_.fusion_threshold_bytes)) {
    if (response.kind == OperationKind::kAllGather) {
      const auto dims = first_dims_.find(response.names[0]);
      response.first_dims = std::move(dims->second);
      first_dims_.erase(dims);
    }
    list.responses.push_back(std::move(response));
  }
  for (Response& response : list.responses) response.sequence = next_sequence_++;
  if (closed()) {
    list.closed = closed_;
    list.closed_reason = closed_reason_;
    closing_taken_ = true;
  }
  return list;
}

void Coordinator::WaitsSince(Instant now, Use& use) {
  use.since = now;
  use.next_warning = now + config_.stall_warning;
  next_stall_ = std::min(next_stall_, use.next_warning);
}

Instant Coordinator::NextDeadline() const { return closed() || uses_.empty() ? Instant::Infinite() : next_stall_; }

std::string Coordinator::MissingRanks(const Use& use) const {
  constexpr size_t kNamedMax = 8;
  std::vector<std::string> missing;
  for (Rank rank = 0; rank < spec_.size() && missing.size() < kNamedMax; ++rank) {
    if (!use.asked[rank]) missing.push_back(Describe(spec_, rank));
  }
  const int others = spec_.size() - use.count - static_cast<int>(missing.size());
  return absl::StrCat(absl::StrJoin(missing, ", "), others > 0 ? absl::StrCat(" and ", others, " more") : "");
}

std::vector<std::string> Coordinator::Stalls(Instant now) {
  // One line for all names that miss the same ranks.
  struct Stall {
    int names = 0;
    std::string first;
    Instant since = Instant::Infinite();
  };
  std::map<std::string, Stall> stalls;
  next_stall_ = Instant::Infinite();
  if (closed()) return {};
  for (auto& [name, use] : uses_) {
    if (!use.refusal.empty() && use.next.empty()) continue;  // all who asked have been told: nobody waits
    if (now >= use.next_warning) {
      Stall& stall = stalls[MissingRanks(use)];
      if (use.since < stall.since) stall.first = name;
      stall.since = std::min(stall.since, use.since);
      ++stall.names;
      use.next_warning = now + std::max(now - use.since, kGapMin);
    }
    next_stall_ = std::min(next_stall_, use.next_warning);
  }
  std::vector<std::string> lines;
  for (const auto& [missing, stall] : stalls) {
    lines.push_back(absl::StrCat("stalled for ", absl::FormatDuration(absl::Floor(now - stall.since, absl::Seconds(1))),
                                 ": ",
                                 stall.names == 1 ? "the operation " : absl::StrCat(stall.names, " operations, first "),
                                 stall.first, ", waits for ", missing));
  }
  return lines;
}

}  // namespace farandole
