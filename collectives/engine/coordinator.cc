#include "collectives/engine/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collectives/engine/mismatch.h"

namespace farandole {

Coordinator::Coordinator(CoordinatorConfig config, GroupSpec spec) : config_(config), spec_(std::move(spec)) {}

void Coordinator::Add(Instant now, Rank from, RequestList list) {
  if (closed()) return;
  for (Announcement& announcement : list.requests) Announce(now, from, std::move(announcement));
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
  const auto [it, is_new] = waiting_.try_emplace(announcement.name);
  Entry& entry = it->second;
  if (is_new) {
    entry.asked.resize(spec_.size());
    entry.has.resize(spec_.size(), false);
    entry.since = now;
    entry.next_warning = now + config_.stall_warning;
  }
  if (entry.has[from]) {
    Close(absl::StatusCode::kInternal,
          absl::StrCat(Describe(spec_, from), " asked twice for ", announcement.name, " before it was answered"));
    return;
  }
  entry.has[from] = true;
  entry.asked[from] = std::move(announcement);
  if (++entry.count < spec_.size()) return;
  Entry complete = std::move(entry);
  waiting_.erase(it);
  Complete(std::move(complete));
}

void Coordinator::Complete(Entry entry) {
  Announcement& first = entry.asked[0];
  const std::string refusal = FindMismatch(spec_, entry.asked);
  if (refusal.empty() && first.kind == OperationKind::kAllGather) {
    std::vector<int64_t>& dims = first_dims_[first.name];
    for (const Announcement& asked : entry.asked) dims.push_back(asked.shape[0]);
  }
  if (!refusal.empty()) {
    Response response;
    response.names.push_back(first.name);
    response.kind = first.kind;
    response.refusal = refusal;
    refused_.push_back(std::move(response));
  }
  if (first.group == 0) {
    if (refusal.empty()) ready_.push_back({std::move(first)});
    return;
  }
  Group& group = groups_.try_emplace(first.group, Group{first.group_size, {}}).first->second;
  const uint64_t id = first.group;
  if (refusal.empty()) group.ready.push_back(std::move(first));
  if (--group.waiting > 0) return;
  if (!group.ready.empty()) ready_.push_back(std::move(group.ready));
  groups_.erase(id);
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

Instant Coordinator::NextDeadline() const {
  Instant next = Instant::Infinite();
  if (closed() || spec_.size() == 1) return next;
  for (const auto& [name, entry] : waiting_) next = std::min(next, entry.next_warning);
  return next;
}

std::string Coordinator::MissingRanks(const Entry& entry) const {
  std::vector<std::string> missing;
  for (Rank rank = 0; rank < spec_.size() && missing.size() < 8; ++rank) {
    if (!entry.has[rank]) missing.push_back(Describe(spec_, rank));
  }
  const int others = spec_.size() - entry.count - static_cast<int>(missing.size());
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
  if (closed()) return {};
  for (auto& [name, entry] : waiting_) {
    if (now < entry.next_warning) continue;
    Stall& stall = stalls[MissingRanks(entry)];
    if (entry.since < stall.since) stall.first = name;
    stall.since = std::min(stall.since, entry.since);
    ++stall.names;
    entry.next_warning = now + (now - entry.since);
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
