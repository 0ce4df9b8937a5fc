#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "tools/base/event_loop.h"
#include "tools/base/mutex.h"
#include "worker/agent/core/commands.h"
#include "worker/agent/core/reports.h"

namespace farandole {

// An agent's stream to its driver (proto/v1/agent_service.proto): commands in, reports out, each in order. One
// connection; when it is lost, so is the driver.
//
// Threads: the methods belong to the loop's thread, and the events run there. Destroyed after the loop has ended.
class DriverLink : private grpc::ClientBidiReactor<v1::AgentMessage, v1::DriverMessage> {
 public:
  struct Events {
    std::function<void(AgentCommand)> command;
    // The last event: the stream is at its end, OK if the driver ended it in order. InvalidArgument: it sent what makes
    // no sense.
    std::function<void(absl::Status)> ended;
  };

  // Begins the stream over `channel`, which is connected.
  DriverLink(std::shared_ptr<grpc::Channel> channel, EventLoop* loop, Events events);
  ~DriverLink() override;  // ends the stream at once

  // Queues a report. The queue needs no bound of its own: output has its credit, and everything else is little.
  void Send(const AgentReport& report) ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues a sign of life, unless one is queued already. Whatever else is sent: the driver reads output without taking
  // it for one.
  void SendHeartbeat() ABSL_LOCKS_EXCLUDED(mutex_);

  // No report follows. The stream is ended when all have been sent.
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  EventLoop* const loop_;
  const Events events_;
  const std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;

  v1::DriverMessage read_;  // of gRPC's threads, one reaction at a time
  absl::Status nonsense_;   // the same

  Mutex mutex_;
  CondVar changed_;
  std::deque<v1::AgentMessage> queue_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool heartbeat_queued_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farandole
