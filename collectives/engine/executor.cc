#include "collectives/engine/executor.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"

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
  changed_.NotifyAll();
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
    absl::optional<Operation> next;
    {
      MutexLock lock(&mutex_);
      changed_.Await(&mutex_, [this] {
        mutex_.AssertHeld();
        return !queue_.empty() || !finish_.ok();
      });
      if (queue_.empty()) {
        finish = finish_;
        break;
      }
      next = std::move(queue_.front());
      queue_.pop_front();
      runs_ = true;
    }
    RunOne(*std::move(next));
    TellOfRoom();
  }
  for (Pending& left : pending_->Close(finish)) left.done(finish, Result());
  MutexLock lock(&mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

void Executor::RunOne(Operation operation) {
  std::vector<Result> results(operation.requests.size());
  absl::Status status = operation.error.ok() ? broken_ : operation.error;
  if (status.ok()) {
    status = runner_.Run(operation, results);
    if (!status.ok()) {
      broken_ = status = AsGroupError(status);
      events_.broken(broken_);
    }
  }
  for (size_t i = 0; i < operation.requests.size(); ++i) {
    if (operation.joined) continue;
    pending_->Finished(operation.requests[i].request.name);
    operation.requests[i].done(status, status.ok() ? std::move(results[i]) : Result());
  }
}

}  // namespace farandole
