#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/relay_pump.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "tools/base/event_loop.h"
#include "tools/base/mutex.h"
#include "tools/base/unique_fd.h"
#include "worker/agent/core/commands.h"

namespace farandole {

// One relay at the agent: connecting -> open -> ended, or refused -> ended.
//
// Threads: everything belongs to the loop's. `ended` is called once, on the loop, and not within a call of a method;
// after it, or after the loop has ended, the relay is destroyed.
class AgentRelay final : private grpc::ClientBidiReactor<v1::RelayBytes, v1::RelayBytes> {
 public:
  AgentRelay(EventLoop* loop, v1::AgentService::Stub* stub, std::function<void()> ended)
      : loop_(loop), stub_(stub), ended_(std::move(ended)) {}
  ~AgentRelay() override;

  // One of them, once.
  void Connect(const OpenRelay& wanted);
  void Refuse(const OpenRelay& wanted, const std::string& why);

 private:
  void OnConnected();
  void Call(const std::string& error);
  void BeginPump();
  void End(bool whole);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  EventLoop* const loop_;
  v1::AgentService::Stub* const stub_;
  const std::function<void()> ended_;

  OpenRelay wanted_;
  UniqueFd socket_;  // while it is being connected
  EventLoop::TimerId timer_ = 0;
  std::unique_ptr<RelayPump> pump_;  // while it is open

  grpc::ClientContext context_;
  v1::RelayBytes in_, out_;
  bool greeting_ = false;  // the first message is on its way
  bool refused_ = false;   // and has an error in it
  bool holding_ = false;   // the call, for operations that begin outside of reactions

  Mutex mutex_;
  CondVar changed_;
  bool calling_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC uses this object
};

}  // namespace farandole
