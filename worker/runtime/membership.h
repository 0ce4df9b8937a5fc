#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/core/group.h"
#include "collectives/engine/engine.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"
#include "worker/runtime/agent_client.h"
#include "worker/runtime/assignment.h"
#include "worker/runtime/process_set_table.h"

namespace farandole {

// The generation that a worker is in: its place, and an engine for each process set that it is a member of. Shared by
// the calls that use it while another thread shuts it down.
//
// Thread-safe.
class Membership {
 public:
  // A process set as one member uses it.
  struct Set {
    std::vector<Rank> ranks;  // of the whole group, ascending
    std::shared_ptr<Engine> engine;
  };

  // `client`: whom to tell of a lost peer; null in a group of one; outlives it.
  Membership(GroupSpec spec, Place place, AgentClient* client, std::shared_ptr<Engine> engine);
  // As Shutdown with no patience.
  ~Membership();

  const Place& place() const { return place_; }
  Generation generation() const { return spec_.generation; }

  // InvalidArgument: there is no such set, or this rank is not in it.
  absl::StatusOr<Set> Find(int id) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The ranks of a set, whether this rank is in it or not; empty if there is no such set.
  std::vector<Rank> RanksOf(int id) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<int> ids() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes that all ranks have agreed on. Begin: the number of the new set, and the group that its members form
  // (empty: this rank is none); then Join with its engine.
  absl::StatusOr<std::vector<Rank>> CheckNew(std::vector<Rank> ranks) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRemovable(int id) const ABSL_LOCKS_EXCLUDED(mutex_);
  int BeginSet(std::vector<Rank> ranks, absl::optional<GroupSpec>* group) ABSL_LOCKS_EXCLUDED(mutex_);
  void JoinSet(int id, std::shared_ptr<Engine> engine) ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves it in order, if this rank is in it.
  void RemoveSet(int id, Instant deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Leaves all sets in order, that of all ranks last.
  void Shutdown(Instant deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  void Abort(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells the person at the launcher about the first operation that a lost peer has failed.
  void Note(const absl::Status& status);

 private:
  std::vector<std::shared_ptr<Engine>> EnginesLastFirst() const ABSL_LOCKS_EXCLUDED(mutex_);

  const GroupSpec spec_;
  const Place place_;
  AgentClient* const client_;
  std::atomic<bool> loss_reported_ = false;

  mutable Mutex mutex_;
  ProcessSetTable table_ ABSL_GUARDED_BY(mutex_);
  std::map<int, std::shared_ptr<Engine>> engines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
