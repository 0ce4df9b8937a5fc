#include "collectives/engine/executor.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"
#include "tools/base/clock.h"

namespace farandole {
namespace {

// Whatever ended a group's data plane is one thing to those who wait for it: the group is over. kCancelled,
// kDeadlineExceeded and kUnavailable become kUnavailable.
absl::Status AsGroupError(const absl::Status& status) {
  if (absl::IsInternal(status) || absl::IsInvalidArgument(status)) return status;
  return absl::UnavailableError(status.message());
}

}  // namespace

Executor::Executor(Communicator* communicator, PendingTable* pending, const EngineConfig& config, Events events)
    : pending_(pending), events_(std::move(events)), runner_(communicator, config), thread_([this] { Loop(); }) {}

Executor::~Executor() { thread_.join(); }

void Executor::Run(Operation operation) {
  MutexLock lock(&mutex_);
  queue_.push_back(std::move(operation));
}

void Executor::Kick() {
  MutexLock lock(&mutex_);
  if (HasWorkLocked()) changed_.NotifyAll();
}

bool Executor::TryRunShort(absl::Duration patience) {
  Operation operation;
  {
    MutexLock lock(&mutex_);
    if (runs_ || queue_.empty() || !runner_.IsShort(queue_.front())) return false;
    operation = std::move(queue_.front());
    queue_.pop_front();
    runs_ = true;
  }
  absl::StatusOr<bool> done = true;
  absl::Status status = broken_;
  if (status.ok()) {
    done = runner_.BeginShort(operation, Now() + patience);
    if (!done.ok()) status = Broken(done.status());
  }
  if (done.ok() && !*done) {
    MutexLock lock(&mutex_);
    begun_ = std::move(operation);
    changed_.NotifyAll();
    return true;
  }
  std::vector<Result> results(operation.requests.size());
  Complete(std::move(operation), std::move(status), std::move(results));
  TellOfRoom();
  return true;
}

bool Executor::HasRoom() {
  MutexLock lock(&mutex_);
  if (!HasRoomLocked()) room_wanted_ = true;
  return HasRoomLocked();
}

void Executor::TellOfRoom() {
  {
    MutexLock lock(&mutex_);
    runs_ = false;
    // What came meanwhile, or the end, which waits for whoever runs.
    if (HasWorkLocked() || !finish_.ok()) changed_.NotifyAll();
    if (!room_wanted_ || !HasRoomLocked()) return;
    room_wanted_ = false;
  }
  events_.room();
}

void Executor::Finish(absl::Status status) {
  MutexLock lock(&mutex_);
  if (!finish_.ok()) return;
  finish_ = std::move(status);
  changed_.NotifyAll();
}

bool Executor::AwaitEnd(Instant deadline) {
  MutexLock lock(&mutex_);
  return changed_.AwaitUntil(&mutex_, deadline, [this] {
    mutex_.AssertHeld();
    return ended_;
  });
}

void Executor::Loop() {
  absl::Status finish;
  while (true) {
    absl::optional<Operation> begun, next;
    {
      MutexLock lock(&mutex_);
      changed_.Await(&mutex_, [this] {
        mutex_.AssertHeld();
        return HasWorkLocked() || (!finish_.ok() && !runs_);
      });
      if (begun_.has_value()) {
        begun = std::exchange(begun_, absl::nullopt);
      } else if (queue_.empty()) {
        finish = finish_;
        break;
      } else {
        next = std::move(queue_.front());
        queue_.pop_front();
        runs_ = true;
      }
    }
    if (begun.has_value()) {
      FinishShort(*std::move(begun));
    } else {
      RunOne(*std::move(next));
    }
    TellOfRoom();
  }
  for (Pending& left : pending_->Close(finish)) left.done(finish, Result());
  MutexLock lock(&mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

absl::Status Executor::Broken(const absl::Status& status) {
  broken_ = AsGroupError(status);
  events_.broken(broken_);
  return broken_;
}

void Executor::RunOne(Operation operation) {
  std::vector<Result> results(operation.requests.size());
  absl::Status status = operation.error.ok() ? broken_ : operation.error;
  if (status.ok()) {
    status = runner_.Run(operation, results);
    if (!status.ok()) status = Broken(status);
  }
  Complete(std::move(operation), std::move(status), std::move(results));
}

void Executor::FinishShort(Operation operation) {
  std::vector<Result> results(operation.requests.size());
  absl::Status status = runner_.FinishShort(operation);
  if (!status.ok()) status = Broken(status);
  Complete(std::move(operation), std::move(status), std::move(results));
}

void Executor::Complete(Operation operation, absl::Status status, std::vector<Result> results) {
  if (operation.joined) return;
  for (size_t i = 0; i < operation.requests.size(); ++i) {
    pending_->Finished(operation.requests[i].request.name);
    operation.requests[i].done(status, status.ok() ? std::move(results[i]) : Result());
  }
}

}  // namespace farandole
