#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/types/optional.h"
#include "grpcpp/grpcpp.h"
#include "proto/v1/agent_service.pb.h"
#include "tools/base/event_loop.h"

namespace farandole {

// One call of AgentService.Relay, with its reactions brought to a loop.
//
// Threads: all methods and events belong to the loop's. The object lives until `done` has been called, which comes
// after Finish() and after every other event.
class RelayCall final : public grpc::ServerBidiReactor<v1::RelayBytes, v1::RelayBytes> {
 public:
  struct Events {
    std::function<void(v1::RelayBytes)> read;  // answers Read()
    std::function<void()> written;             // answers Write()
    std::function<void()> broken;              // the other side is gone; perhaps more than once
    std::function<void()> done;
  };

  RelayCall(grpc::CallbackServerContext* context, EventLoop* loop) : context_(context), loop_(loop) {}

  // Before anything else. They may own what owns the call.
  void Begin(Events events) { events_ = std::move(events); }

  void Read() { StartRead(&in_); }
  void Write(std::string bytes, bool end);
  // Ends the call, at once: what has not been written will not be. Only the first counts.
  void End(const grpc::Status& status);

  const grpc::CallbackServerContext& context() const { return *context_; }

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  grpc::CallbackServerContext* const context_;
  EventLoop* const loop_;
  Events events_;
  v1::RelayBytes in_, out_;
  bool writing_ = false;
  bool finished_ = false;
  absl::optional<grpc::Status> result_;  // set: the call is to end
};

}  // namespace farandole
