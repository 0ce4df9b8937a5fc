#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "collectives/core/group.h"
#include "collectives/engine/fusion.h"
#include "collectives/engine/wire.h"
#include "tools/base/instant.h"

namespace farandole {

struct CoordinatorConfig {
  int64_t fusion_threshold_bytes = int64_t{128} << 20;
  bool fuse_groups_apart = false;
  absl::Duration cycle_time = absl::ZeroDuration();
  absl::Duration stall_warning = absl::Seconds(60);          // infinite: never
  absl::Duration stall_shutdown = absl::InfiniteDuration();  // the same
};

// Rank 0's part of the negotiation: hears what every rank asks for and puts what all have asked for into one sequence.
// Pure.
//
// One use of a name is one request of every rank, the k-th of each:
//
//   OPEN --all ranks ask alike-----> ready (its group, if any, waits for its other members), over
//   OPEN --a rank asks otherwise---> REFUSED: all who have asked are told, at once
//   REFUSED --a further rank asks--> it is told the same, whatever it asks; when the last has been told: over
//
// A rank that has joined takes part in every use without asking, until all have joined. To send and to receive only two
// ranks ask: the first one says which is the other.
//
// So every rank hears of a refused use exactly once, with one text. A rank that has been told may use the name again;
// that next use begins when the refused one is over, so no rank can take one use for the other.
//
// The whole:
//
//   OPEN --a rank leaves, fails or is lost--> CLOSED     the last ResponseList says why; nothing comes after it
//
// Thread-compatible.
class Coordinator {
 public:
  Coordinator(CoordinatorConfig config, GroupSpec spec);

  // Rank `from` says `list`; requests that were enqueued together are in one list. A rank that announces a name twice
  // before it was answered closes the group (it is broken).
  void Add(Instant now, Rank from, RequestList list);

  // The link to `rank` has ended without its leaving.
  void Lost(Rank rank, const std::string& how);

  // When Take() should be called, if has_news(): at once, or once more may have been collected (cycle_time).
  Instant TakeAt() const { return refused_.empty() && !closed() ? ready_since_ + config_.cycle_time : Instant(); }

  // Whether Take() has something to say.
  bool has_news() const { return !ready_.empty() || !refused_.empty() || (closed() && !closing_taken_); }

  // What has become ready since the last call, fused and numbered; empty when nothing has.
  ResponseList Take();

  bool closed() const { return closed_ != absl::StatusCode::kOk; }

  // When Stalls() could have something new to say or do; infinite when nobody waits.
  Instant NextDeadline() const;

  // What has waited longer than the limit, a line for all names that miss the same ranks. Said again after twice the
  // time. What has waited longer than `stall_shutdown` closes the group.
  std::vector<std::string> Stalls(Instant now);

 private:
  struct Use {
    Announcement first;                               // all who ask while it is open ask alike
    std::vector<bool> asked;                          // by rank
    int count = 0;                                    // of those
    std::vector<int64_t> first_dims;                  // allgather, alltoall, by rank
    Rank first_rank = 0;                              // whose `first` is
    uint64_t group = 0;                               // in which rank 0 asks for it, while its group has to wait for it
    std::string refusal;                              // not empty: REFUSED
    std::vector<std::pair<Rank, Announcement>> next;  // REFUSED: what ranks that have been told ask for
    Instant since;                                    // when somebody began to wait
    Instant next_warning;
  };
  using Uses = std::map<std::string, Use>;

  // Rank 0's requests decide which belong together: all ranks' agree with them, or they are refused.
  struct Group {
    int unsettled = 0;  // members of which it is not known yet whether they are ready or refused
    FusionUnit ready;
  };

  void Announce(Instant now, Rank from, Announcement announcement);
  void AskAgain(Instant now, Rank from, Announcement announcement, Use& use);
  void Judge(Rank from, const Announcement& announcement, Use& use);
  void JudgePair(Rank from, const Announcement& announcement, Use& use);
  void Join(Rank from, const Announcement& announcement);
  void EndJoin(const Announcement& announcement);
  bool IsComplete(const Use& use) const;
  void MakeReady(Use use);
  void Refuse(std::string text, Use& use);
  void Tell(const Use& use, std::vector<int64_t> ranks);
  void End(Uses::iterator it);
  void Settle(Use& use);
  void ReleaseGroups();
  void WaitsSince(Instant now, Use& use);
  void Close(absl::StatusCode code, std::string reason);
  std::string MissingRanks(const Use& use) const;

  const CoordinatorConfig config_;
  const GroupSpec spec_;
  Uses uses_;
  std::map<uint64_t, Group> groups_;
  std::vector<uint64_t> settled_groups_;  // of which a member was settled by this list, in order
  std::vector<FusionUnit> ready_;
  Instant ready_since_;       // of the first of them
  std::vector<bool> joined_;  // by rank
  int joined_count_ = 0;      // of those
  std::vector<Response> refused_;
  uint64_t next_sequence_ = 1;
  Instant next_stall_ = Instant::Infinite();  // not after the earliest next_warning
  absl::StatusCode closed_ = absl::StatusCode::kOk;
  std::string closed_reason_;
  bool closing_taken_ = false;
};

}  // namespace farandole
