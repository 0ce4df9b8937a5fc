#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "collectives/core/group.h"
#include "collectives/engine/fusion.h"
#include "collectives/engine/wire.h"
#include "tools/base/instant.h"

namespace farandole {

struct CoordinatorConfig {
  int64_t fusion_threshold_bytes = int64_t{128} << 20;
  absl::Duration stall_warning = absl::Seconds(60);  // infinite: never
};

// Rank 0's part of the negotiation: hears what every rank asks for and puts what all have asked for into one sequence.
// Pure.
//
// A name is ready when every rank has announced it, requests of one grouped call when all of its names are. If the
// announcements disagree, the name is refused, with one text for every rank, as soon as all ranks have announced it, so
// that every rank hears of it exactly once and the name starts clean afterwards.
//
//   OPEN --a rank leaves, fails or is lost--> CLOSED     the last ResponseList says why; nothing comes after it
//
// Thread-compatible.
class Coordinator {
 public:
  Coordinator(CoordinatorConfig config, GroupSpec spec);

  // Rank `from` says `list`. A rank that announces a name twice before it was answered closes the group (it is broken).
  void Add(Instant now, Rank from, RequestList list);

  // The link to `rank` has ended without its leaving.
  void Lost(Rank rank, const std::string& how);

  // What has become ready since the last call, fused and numbered; empty when nothing has.
  ResponseList Take();

  bool closed() const { return closed_ != absl::StatusCode::kOk; }

  // When Stalls() could have something new to say.
  Instant NextDeadline() const;

  // A line for each name that has waited longer than the limit: which ranks are missing. Said again after twice the
  // time.
  std::vector<std::string> Stalls(Instant now);

 private:
  struct Entry {
    std::vector<Announcement> asked;  // by rank; meaningful where `has` is set
    std::vector<bool> has;
    int count = 0;
    Instant since;
    Instant next_warning;
  };
  struct Group {
    uint32_t waiting = 0;  // names not yet ready
    FusionUnit ready;
  };

  void Announce(Instant now, Rank from, Announcement announcement);
  void Complete(Entry entry);
  void Close(absl::StatusCode code, std::string reason);
  std::string MissingRanks(const Entry& entry) const;

  const CoordinatorConfig config_;
  const GroupSpec spec_;
  std::map<std::string, Entry> waiting_;
  std::map<uint64_t, Group> groups_;
  std::vector<FusionUnit> ready_;
  std::vector<Response> refused_;
  uint64_t next_sequence_ = 1;
  absl::StatusCode closed_ = absl::StatusCode::kOk;
  std::string closed_reason_;
  bool closing_taken_ = false;
  std::map<std::string, std::vector<int64_t>> first_dims_;  // of ready allgathers
};

}  // namespace farandole
