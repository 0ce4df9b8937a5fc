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

bool IsBetweenTwo(OperationKind kind) { return kind == OperationKind::kSend || kind == OperationKind::kReceive; }

}  // namespace

Coordinator::Coordinator(CoordinatorConfig config, GroupSpec spec)
    : config_(config), spec_(std::move(spec)), joined_(spec_.size(), false) {}

void Coordinator::Add(Instant now, Rank from, RequestList list) {
  if (closed()) return;
  const bool had_ready = !ready_.empty();
  for (Announcement& announcement : list.requests) {
    if (announcement.kind == OperationKind::kJoin) {
      Join(from, announcement);
    } else {
      Announce(now, from, std::move(announcement));
    }
  }
  ReleaseGroups();
  if (!had_ready) ready_since_ = now;
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
    if (is_new) {
      use.first = announcement;
      use.first_rank = from;
    }
    Judge(from, announcement, use);
  }
  if (IsComplete(use)) End(it);
}

// Two ranks for what is between two; else all who have not joined.
bool Coordinator::IsComplete(const Use& use) const {
  if (IsBetweenTwo(use.first.kind)) return use.count == 2;
  if (joined_count_ == 0) return use.count == spec_.size();
  for (Rank rank = 0; rank < spec_.size(); ++rank) {
    if (!use.asked[rank] && !joined_[rank]) return false;
  }
  return true;
}

void Coordinator::Join(Rank from, const Announcement& announcement) {
  if (joined_[from]) {
    return Close(absl::StatusCode::kInternal, absl::StrCat(Describe(spec_, from), " joined twice"));
  }
  joined_[from] = true;
  ++joined_count_;
  // What waited for this rank only, in the order of names, which all ranks would see alike.
  std::vector<std::string> names;
  for (const auto& [name, use] : uses_) names.push_back(name);
  for (const std::string& name : names) {
    const auto it = uses_.find(name);
    if (it == uses_.end()) continue;
    Use& use = it->second;
    if (use.refusal.empty() && !use.asked[from]) {
      if (std::string text = JoinedMistake(spec_, use.first, from); !text.empty()) Refuse(std::move(text), use);
    }
    if (IsComplete(use)) End(it);
  }
  if (joined_count_ < spec_.size()) return;
  Announcement last = announcement;
  last.root = from;
  EndJoin(last);
}

// The last one has joined: all are told who it was, and begin anew.
void Coordinator::EndJoin(const Announcement& announcement) {
  ReadyRequest ready;
  ready.asked = announcement;
  ready_.push_back({std::move(ready)});
  joined_.assign(spec_.size(), false);
  joined_count_ = 0;
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

void Coordinator::JudgePair(Rank from, const Announcement& announcement, Use& use) {
  if (use.count < 2) return;
  std::string text = PairDisagreement(spec_, use.first, use.first_rank, announcement, from);
  if (!text.empty()) Refuse(std::move(text), use);
}

void Coordinator::Judge(Rank from, const Announcement& announcement, Use& use) {
  for (Rank rank = 0; rank < spec_.size() && joined_count_ > 0; ++rank) {
    if (!joined_[rank]) continue;
    if (std::string text = JoinedMistake(spec_, announcement, rank); !text.empty()) return Refuse(std::move(text), use);
  }
  if (IsBetweenTwo(use.first.kind)) return JudgePair(from, announcement, use);
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
  if (!IsComplete(use)) return;
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

// Every rank that has to has asked.
void Coordinator::End(Uses::iterator it) {
  Use use = std::move(it->second);
  std::vector<std::pair<Rank, Announcement>> next = std::move(use.next);
  const Instant since = use.since;
  uses_.erase(it);
  if (use.refusal.empty()) MakeReady(std::move(use));
  if (uses_.empty()) next_stall_ = Instant::Infinite();
  // A group that rank 0 has begun by one of these could not be complete before now: who completes another member of it
  // has asked for this name in the same list.
  for (auto& [rank, announcement] : next) Announce(since, rank, std::move(announcement));
}

void Coordinator::MakeReady(Use use) {
  ReadyRequest ready;
  if (IsBetweenTwo(use.first.kind)) {
    const bool sends = use.first.kind == OperationKind::kSend;
    ready.first_dims = {sends ? use.first_rank : use.first.root, sends ? use.first.root : use.first_rank};
    use.first.kind = OperationKind::kSend;
  } else {
    ready.first_dims = std::move(use.first_dims);
    for (Rank rank = 0; rank < spec_.size() && joined_count_ > 0; ++rank) {
      if (!use.asked[rank]) ready.joined.push_back(rank);
    }
  }
  ready.asked = std::move(use.first);
  const uint64_t group = use.group;
  Settle(use);
  if (group == 0) {
    ready_.push_back({std::move(ready)});
  } else {
    groups_[group].ready.push_back(std::move(ready));
  }
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
  const FusionRules rules{config_.fusion_threshold_bytes, config_.fuse_groups_apart};
  for (Response& response : Fuse(std::exchange(ready_, {}), rules)) list.responses.push_back(std::move(response));
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
  use.next_warning = now + std::min(config_.stall_warning, config_.stall_shutdown);
  next_stall_ = std::min(next_stall_, use.next_warning);
}

Instant Coordinator::NextDeadline() const { return closed() || uses_.empty() ? Instant::Infinite() : next_stall_; }

std::string Coordinator::MissingRanks(const Use& use) const {
  constexpr size_t kNamedMax = 8;
  std::vector<std::string> missing;
  int others = 0;
  for (Rank rank = 0; rank < spec_.size(); ++rank) {
    const bool is_needed = IsBetweenTwo(use.first.kind) ? rank == use.first.root : !joined_[rank];
    if (use.asked[rank] || !is_needed) continue;
    if (missing.size() < kNamedMax) {
      missing.push_back(Describe(spec_, rank));
    } else {
      ++others;
    }
  }
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
    if (now >= use.since + config_.stall_shutdown) {
      Close(absl::StatusCode::kAborted, absl::StrCat("Horovod has been shut down: the operation ", name, " has waited ",
                                                     absl::FormatDuration(config_.stall_shutdown), " for ",
                                                     MissingRanks(use), " (HOROVOD_STALL_SHUTDOWN_TIME_SECONDS)"));
      return {};
    }
    if (now >= use.next_warning) {
      Stall& stall = stalls[MissingRanks(use)];
      if (use.since < stall.since) stall.first = name;
      stall.since = std::min(stall.since, use.since);
      ++stall.names;
      use.next_warning = std::min(now + std::max(now - use.since, kGapMin), use.since + config_.stall_shutdown);
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
