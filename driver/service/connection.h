#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "driver/core/events.h"
#include "driver/service/agent_service.h"
#include "grpcpp/grpcpp.h"
#include "proto/convert/driver_convert.h"
#include "proto/v1/agent_service.pb.h"
#include "tools/base/mutex.h"

namespace farandole {

class Connection;

// Which agents are expected and which are connected. Thread-safe.
class AgentRegistry {
 public:
  virtual ~AgentRegistry() = default;
  // Admits the agent that said `hello` on `connection`, or says why not (agent_service.proto has the codes).
  virtual absl::Status Register(const AgentHello& hello, const std::shared_ptr<Connection>& connection) = 0;
  // The stream of a registered agent has ended. It may not come back.
  virtual void Unregister(const AgentIdentity& agent) = 0;
  // gRPC has no more use for the connection.
  virtual void Forget(const std::shared_ptr<Connection>& connection) = 0;
};

// One call of AgentService.Connect: unregistered -> registered -> ended. Reads always; writes one message after the
// other. The workers' input goes piece by piece, each when nothing else is to be written, and before the agent is
// reported as ready: so whatever else is said to it need not wait, a spawn comes behind all of it, and what it takes
// counts as part of the start.
class Connection final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::DriverMessage> {
 public:
  static std::shared_ptr<Connection> Make(grpc::CallbackServerContext* context, const AgentServiceOptions& options,
                                          AgentRegistry* registry, AgentListener* listener);

  // Begins to read.
  void Begin();
  void Send(v1::DriverMessage message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends End; the end of the stream is then in order.
  void SendEnd(v1::DriverMessage message) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReturnCredit(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the call, whatever the other end does.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  bool registered() const ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override;

 private:
  Connection(grpc::CallbackServerContext* context, const AgentServiceOptions& options, AgentRegistry* registry,
             AgentListener* listener)
      : context_(context), options_(options), registry_(registry), listener_(listener) {}

  absl::Status TakeHello();
  absl::Status TakeWord();
  absl::Status CountOutput(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The agent will say nothing more: because it closed its side (OK), or because of `error`.
  void EndOfStream(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool InputSent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueInput() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::CallbackServerContext* const context_;
  const AgentServiceOptions& options_;
  AgentRegistry* const registry_;
  AgentListener* const listener_;

  // Of the reading callbacks, of which there is one at a time.
  v1::AgentMessage in_;
  absl::optional<AgentIdentity> agent_;

  mutable Mutex mutex_;
  std::deque<v1::DriverMessage> out_ ABSL_GUARDED_BY(mutex_);  // front: being written
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool registered_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_to_end_ ABSL_GUARDED_BY(mutex_) = false;
  size_t input_queued_ ABSL_GUARDED_BY(mutex_) = 0;              // bytes of the workers' input
  absl::optional<AgentReady> ready_ ABSL_GUARDED_BY(mutex_);     // to be told once the agent has all of that
  int64_t unwritten_output_ ABSL_GUARDED_BY(mutex_) = 0;         // bytes passed on and not given back
  absl::optional<grpc::Status> result_ ABSL_GUARDED_BY(mutex_);  // set: nothing is sent after this, Finish() follows
  bool done_ ABSL_GUARDED_BY(mutex_) = false;                    // `context_` is gone

  std::shared_ptr<Connection> self_;  // until OnDone: gRPC uses it
};

}  // namespace farandole
