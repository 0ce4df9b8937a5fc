#include "collectives/engine/executor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/cpu/reduce.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

int64_t Count(const Request& request) { return ElementCount(request.shape, request.dtype).value_or(0); }
int64_t Bytes(const Request& request) { return Count(request) * SizeOf(request.dtype); }

void Copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// Whatever ended a group's data plane is one thing to those who wait for it: the group is over. kCancelled,
// kDeadlineExceeded and kUnavailable become kUnavailable.
absl::Status AsGroupError(const absl::Status& status) {
  if (absl::IsInternal(status) || absl::IsInvalidArgument(status)) return status;
  return absl::UnavailableError(status.message());
}

absl::Status NoMemory(int64_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("there is no memory for the ", bytes, " bytes of an operation"));
}

}  // namespace

Executor::Executor(Communicator* communicator, PendingTable* pending, absl::Duration data_timeout, Events events)
    : communicator_(communicator),
      pending_(pending),
      data_timeout_(data_timeout),
      events_(std::move(events)),
      thread_([this] { Loop(); }) {}

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
    status = Collective(operation, results);
    if (!status.ok()) {
      broken_ = status = AsGroupError(status);
      events_.broken(broken_);
    }
  }
  for (size_t i = 0; i < operation.requests.size(); ++i) {
    pending_->Finished(operation.requests[i].request.name);
    operation.requests[i].done(status, status.ok() ? std::move(results[i]) : Result());
  }
}

Instant Executor::Deadline() const { return Now() + data_timeout_; }

absl::StatusOr<std::byte*> Executor::Buffer(int64_t bytes) {
  if (bytes > buffer_bytes_) {
    buffer_.reset();
    buffer_bytes_ = 0;
    buffer_.reset(new (std::nothrow) std::byte[bytes]);
    if (buffer_ == nullptr) return NoMemory(bytes);
    buffer_bytes_ = bytes;
  }
  return buffer_.get();
}

absl::Status Executor::Collective(Operation& operation, std::vector<Result>& results) {
  switch (operation.response.kind) {
    case OperationKind::kAllReduce:
      return AllReduce(operation);
    case OperationKind::kAllGather:
      return AllGather(operation, results[0]);
    case OperationKind::kBroadcast:
      return Broadcast(operation);
    case OperationKind::kBarrier:
      return communicator_->Barrier(Deadline());
    case OperationKind::kJoin:
    case OperationKind::kAllToAll:
    case OperationKind::kReduceScatter:
    case OperationKind::kSend:
    case OperationKind::kReceive:
      break;
  }
  return absl::InternalError("an operation of no kind");
}

absl::Status Executor::AllReduce(Operation& operation) {
  const Response& how = operation.response;
  int64_t bytes = 0;
  for (const Pending& pending : operation.requests) bytes += Bytes(pending.request);
  ASSIGN_OR_RETURN(std::byte* const buffer, Buffer(bytes));
  const int64_t count = bytes / SizeOf(how.dtype);
  std::byte* at = buffer;
  for (const Pending& pending : operation.requests) {
    const int64_t size = Bytes(pending.request);
    if (how.prescale == 1.0) {
      Copy(at, pending.request.input, size);
    } else {
      Scale(how.dtype, pending.request.input, at, Count(pending.request), how.prescale);
    }
    at += size;
  }
  RETURN_IF_ERROR(communicator_->AllReduce(buffer, buffer, count, how.dtype, how.op, Deadline()));
  at = buffer;
  for (const Pending& pending : operation.requests) {
    const int64_t size = Bytes(pending.request);
    if (how.postscale == 1.0) {
      Copy(pending.request.output, at, size);
    } else {
      Scale(how.dtype, at, pending.request.output, Count(pending.request), how.postscale);
    }
    at += size;
  }
  return absl::OkStatus();
}

absl::Status Executor::AllGather(Operation& operation, Result& result) {
  const Request& request = operation.requests[0].request;
  const std::vector<int64_t>& dims = operation.response.first_dims;
  int64_t row_bytes = SizeOf(request.dtype);
  for (size_t i = 1; i < request.shape.size(); ++i) row_bytes *= request.shape[i];
  std::vector<int64_t> bytes;
  for (const int64_t dim : dims) bytes.push_back(dim * row_bytes);
  const int64_t total = GatheredBytes(request.shape, request.dtype, dims).value_or(0);
  absl::optional<ByteBuffer> output = ByteBuffer::Make(total);
  if (!output.has_value()) return NoMemory(total);
  result.rows = dims;
  result.output = *std::move(output);
  const auto* const input = static_cast<const std::byte*>(request.input);
  return communicator_->AllGather(absl::MakeConstSpan(input, Bytes(request)), result.output.span(), bytes, Deadline());
}

absl::Status Executor::Broadcast(Operation& operation) {
  const Request& request = operation.requests[0].request;
  const int64_t bytes = Bytes(request);
  ASSIGN_OR_RETURN(std::byte* const buffer, Buffer(bytes));
  if (communicator_->rank() == request.root) Copy(buffer, request.input, bytes);
  RETURN_IF_ERROR(communicator_->Broadcast(absl::MakeSpan(buffer, bytes), request.root, Deadline()));
  Copy(request.output, buffer, bytes);
  return absl::OkStatus();
}

}  // namespace farandole
