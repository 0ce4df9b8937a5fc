#include "driver/core/worker_table.h"

#include <algorithm>

#include "tools/base/check.h"

namespace farandole {
namespace {

struct WorkerMove {
  WorkerState from, to;
  const char* meaning;
};

// Every legal move of a worker. Anything else is a bug of ours: what the world can send is checked before.
constexpr WorkerMove kWorkerMoves[] = {
    {WorkerState::kStarting, WorkerState::kReady, "joined and waits for an assignment"},
    {WorkerState::kStarting, WorkerState::kLeaving, "was told to end"},
    {WorkerState::kStarting, WorkerState::kGone, "ended without having joined, could not be executed, or was lost"},
    {WorkerState::kReady, WorkerState::kRunning, "was assigned a place in a new generation"},
    {WorkerState::kReady, WorkerState::kLeaving, "was told to end"},
    {WorkerState::kReady, WorkerState::kGone, "ended or was lost"},
    {WorkerState::kRunning, WorkerState::kLeaving, "left its generation, or was told to end"},
    {WorkerState::kRunning, WorkerState::kGone, "ended or was lost"},
    {WorkerState::kLeaving, WorkerState::kReady, "joined again and waits for the next generation"},
    {WorkerState::kLeaving, WorkerState::kGone, "ended, was lost, or overran its time"},
};

}  // namespace

WorkerRecord* WorkerTable::FindLive(const WorkerId& id) {
  const auto it =
      std::find_if(workers_.begin(), workers_.end(), [&](const WorkerRecord& worker) { return worker.id == id; });
  return it != workers_.end() && it->live() ? &*it : nullptr;
}

void WorkerTable::Move(WorkerRecord* worker, WorkerState to) {
  const bool legal = std::any_of(std::begin(kWorkerMoves), std::end(kWorkerMoves),
                                 [&](const WorkerMove& move) { return move.from == worker->state && move.to == to; });
  CHECK(legal) << "worker " << worker->id << ": " << ToString(worker->state) << " -> " << ToString(to);
  worker->state = to;
  worker->waits_since = Instant::Infinite();
  if (to == WorkerState::kGone) worker->deadline = Instant::Infinite();
}

bool WorkerTable::AnyLive() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const WorkerRecord& worker) { return worker.live(); });
}

bool WorkerTable::All(WorkerState state) const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [&](const WorkerRecord& worker) { return worker.state == state; });
}

bool WorkerTable::Any(WorkerState state) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const WorkerRecord& worker) { return worker.state == state; });
}

WorkerRecord* WorkerTable::FirstVictim() {
  WorkerRecord* first = nullptr;
  for (WorkerRecord& worker : workers_) {
    if (worker.outcome != Outcome::kVictim) continue;
    if (first == nullptr || worker.ended_at < first->ended_at) first = &worker;
  }
  return first;
}

Instant WorkerTable::WaitingSince() const {
  Instant since = Instant::Infinite();
  for (const WorkerRecord& worker : workers_) since = std::min(since, worker.waits_since);
  return since;
}

Instant WorkerTable::NextDeadline() const {
  Instant next = Instant::Infinite();
  for (const WorkerRecord& worker : workers_) next = std::min(next, worker.deadline);
  return next;
}

void WorkerTable::ShiftDeadlines(absl::Duration by) {
  for (WorkerRecord& worker : workers_) {
    worker.deadline = worker.deadline + by;
    worker.waits_since = worker.waits_since + by;
    worker.ended_at = worker.ended_at + by;
  }
}

}  // namespace farandole
