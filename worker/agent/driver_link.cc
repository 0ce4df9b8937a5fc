#include "worker/agent/driver_link.h"

#include <utility>

#include "proto/convert/agent_convert.h"

namespace farandole {

DriverLink::DriverLink(std::shared_ptr<grpc::Channel> channel, EventLoop* loop, Events events)
    : loop_(loop), events_(std::move(events)), stub_(v1::AgentService::NewStub(channel)) {
  stub_->async()->Connect(&context_, this);
  AddHold();  // for writes, which begin outside of reactions; until Finish or the stream breaks
  StartRead(&read_);
  StartCall();
}

DriverLink::~DriverLink() {
  context_.TryCancel();
  Finish();
  MutexLock lock(&mutex_);
  changed_.Await(&mutex_, [this] {
    mutex_.AssertHeld();
    return done_;
  });
}

void DriverLink::Send(const AgentReport& report) {
  MutexLock lock(&mutex_);
  if (finishing_ || broken_) return;
  queue_.push_back(ToProto(report));
  if (queue_.size() == 1) WriteNext();
}

void DriverLink::SendHeartbeat() {
  MutexLock lock(&mutex_);
  if (heartbeat_queued_ || finishing_ || broken_) return;
  heartbeat_queued_ = true;
  queue_.push_back(ToProto(AgentReport(AgentHeartbeat{})));
  if (queue_.size() == 1) WriteNext();
}

void DriverLink::Finish() {
  MutexLock lock(&mutex_);
  if (std::exchange(finishing_, true)) return;
  if (queue_.empty()) WriteNext();
}

// gRPC runs no reaction inside the calls that begin an operation, so the lock may be held over them: it keeps them in
// order.
void DriverLink::WriteNext() {
  if (!queue_.empty() && !broken_) {
    StartWrite(&queue_.front());
  } else if (finishing_) {
    if (!broken_) StartWritesDone();
    RemoveHold();
  }
}

void DriverLink::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  if (queue_.front().has_heartbeat()) heartbeat_queued_ = false;
  queue_.pop_front();
  if (!ok) {
    broken_ = true;
    queue_.clear();
    // OnReadDone(false) follows, and with it Finish.
  }
  if (!queue_.empty() || finishing_) WriteNext();
}

void DriverLink::OnReadDone(bool ok) {
  if (ok) {
    absl::StatusOr<AgentCommand> command = FromProto(read_);
    if (command.ok()) {
      loop_->Post([this, command = *std::move(command)]() mutable { events_.command(std::move(command)); });
      return StartRead(&read_);
    }
    nonsense_ = command.status();
    context_.TryCancel();
  }
  Finish();
}

void DriverLink::OnDone(const grpc::Status& status) {
  absl::Status ended = nonsense_;
  if (ended.ok()) ended = absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  loop_->Post([this, ended = std::move(ended)] { events_.ended(ended); });
  MutexLock lock(&mutex_);
  done_ = true;
  changed_.NotifyAll();
}

}  // namespace farandole
