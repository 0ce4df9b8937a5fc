#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "driver/core/driver_view.h"
#include "driver/core/ids.h"
#include "driver/core/verdict.h"
#include "tools/base/instant.h"

namespace farandole {

// What the core knows of one worker.
struct WorkerRecord {
  WorkerId id;
  Placement placement;
  WorkerState state = WorkerState::kStarting;
  bool spawned = false;          // its agent was asked to start it
  bool process_started = false;  // and has
  bool joined = false;           // it has called init, at any time
  std::string endpoint;
  Generation generation;  // the newest it is a member of; zero: none yet

  bool saw_loss = false;  // it has lost a peer of this generation

  // In state ready: since when it waits for an assignment.
  Instant waits_since = Instant::Infinite();

  bool told_to_end = false;  // by TERM
  bool killed = false;
  // Told to end: when it is killed. Killed: when it is given up.
  Instant deadline = Instant::Infinite();

  // When gone:
  Outcome outcome = Outcome::kNone;
  ExitStatus exit;
  std::string what;  // see WorkerEnd
  bool out_of_memory = false;
  Instant ended_at = Instant::Infinite();

  // Has, or may have, a process.
  bool live() const { return spawned && state != WorkerState::kGone; }
};

// The workers of a job in rank order.
class WorkerTable {
 public:
  void Add(WorkerRecord worker) { workers_.push_back(std::move(worker)); }

  // Null if there is none, if the slot has another incarnation, if it was not started yet or is gone.
  WorkerRecord* FindLive(const WorkerId& id);

  // CHECKs that the move is one of those that a worker can make.
  void Move(WorkerRecord* worker, WorkerState to);

  bool AnyLive() const;
  bool All(WorkerState state) const;
  bool Any(WorkerState state) const;

  // Ranks of the workers for which `predicate` holds, ascending.
  template <typename Predicate>
  std::vector<int> Ranks(Predicate predicate) const {
    std::vector<int> ranks;
    for (const WorkerRecord& worker : workers_) {
      if (predicate(worker)) ranks.push_back(worker.placement.rank);
    }
    return ranks;
  }

  // The first that failed as a victim of a lost peer (verdict.h) and has not been judged otherwise since; null: none.
  WorkerRecord* FirstVictim();
  const WorkerRecord* FirstVictim() const { return const_cast<WorkerTable*>(this)->FirstVictim(); }

  // The earliest time since when a worker waits for an assignment.
  Instant WaitingSince() const;
  Instant NextDeadline() const;
  void ShiftDeadlines(absl::Duration by);

  std::vector<WorkerRecord>& all() { return workers_; }
  const std::vector<WorkerRecord>& all() const { return workers_; }

 private:
  std::vector<WorkerRecord> workers_;
};

}  // namespace farandole
