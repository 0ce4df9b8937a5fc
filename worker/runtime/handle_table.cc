#include "worker/runtime/handle_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/check.h"
#include "tools/base/status_macros.h"

namespace farandole {

Handle HandleTable::Add(const std::shared_ptr<Engine>& engine) {
  auto operation = std::make_shared<Operation>();
  operation->engine = engine;
  MutexLock lock(&mutex_);
  const Handle handle = next_++;
  operations_.emplace(handle, std::move(operation));
  return handle;
}

void HandleTable::Finish(Handle handle, absl::Status status, Result result) {
  MutexLock lock(&mutex_);
  const auto it = operations_.find(handle);
  CHECK(it != operations_.end() && !it->second->finished) << "operation " << handle << " finished twice";
  Operation& operation = *it->second;
  operation.status = std::move(status);
  operation.result = std::move(result);
  operation.finished.store(true, std::memory_order_release);
  operation.ended.NotifyAll();
  if (operation.released) operations_.erase(it);  // those who wait share it
}

absl::StatusOr<bool> HandleTable::Poll(Handle handle) const {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const OperationPtr operation, Find(handle));
  return operation->finished.load();
}

absl::Status HandleTable::Wait(Handle handle, Instant deadline) {
  OperationPtr operation;
  {
    MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(operation, Find(handle));
  }
  if (const std::shared_ptr<Engine> engine = operation->engine.lock(); engine != nullptr) {
    engine->Assist([&] { return operation->finished.load(std::memory_order_acquire); }, deadline);
  }
  MutexLock lock(&mutex_);
  if (!operation->ended.AwaitUntil(&mutex_, deadline, [&] { return operation->finished.load(); })) {
    return absl::DeadlineExceededError(absl::StrCat("operation ", handle, " has not finished yet; it goes on"));
  }
  return operation->status;
}

absl::StatusOr<const Result*> HandleTable::ResultOf(Handle handle) const {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const OperationPtr operation, Find(handle));
  if (!operation->finished) {
    return absl::FailedPreconditionError(
        absl::StrCat("operation ", handle, " has not finished yet: wait for it before asking for its result"));
  }
  if (!operation->status.ok()) return operation->status;
  return &operation->result;
}

absl::Status HandleTable::Release(Handle handle) {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const OperationPtr operation, Find(handle));
  operation->released = true;
  if (operation->finished) operations_.erase(handle);
  return absl::OkStatus();
}

int64_t HandleTable::size() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(operations_.size());
}

absl::StatusOr<HandleTable::OperationPtr> HandleTable::Find(Handle handle) const {
  const auto it = operations_.find(handle);
  if (it == operations_.end() || it->second->released) {
    return absl::NotFoundError(
        absl::StrCat("no operation has handle ", handle, ": it was released or never given out"));
  }
  return it->second;
}

}  // namespace farandole
