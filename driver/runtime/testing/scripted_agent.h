#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "driver/core/ids.h"
#include "driver/runtime/agent_starter.h"
#include "grpcpp/grpcpp.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "tools/base/mutex.h"

namespace farandole {

// An agent in this process that speaks real gRPC to the driver. Its workers are imagined: `program` is called for each
// spawn and says what the worker does. Without heartbeats unless a test sends them, so jobs in tests end within
// lost_after.
//
// What it does not do: processes, credit (tests that exceed it must wait for it themselves), workers' gRPC.
class ScriptedAgent {
 public:
  // Called on the agent's thread, for each worker that is spawned, and for other messages.
  struct Behaviour {
    std::function<void(ScriptedAgent&, const v1::Spawn&)> program;
    std::function<void(ScriptedAgent&, const v1::Input&)> on_input;
    std::function<void(ScriptedAgent&, const v1::Assignment&)> on_assignment;
    std::function<void(ScriptedAgent&, const v1::Signal&)> on_signal;  // by default the worker ends by it
    std::function<void(ScriptedAgent&, const v1::OutputCredit&)> on_credit;
    std::function<void(ScriptedAgent&, const v1::End&)> on_end;  // by default it hangs up
    bool registers = true;
  };

  ScriptedAgent(AgentStart start, Behaviour behaviour, std::function<void(absl::Status)> ended);
  ~ScriptedAgent();

  // What an agent says; from any thread. Nothing after HangUp().
  void Started(const v1::WorkerId& worker);
  void StartFailed(const v1::WorkerId& worker, int error, const std::string& what);
  void Joined(const v1::WorkerId& worker, uint64_t after = 0);
  void Left(const v1::WorkerId& worker, uint64_t generation);
  void Exited(const v1::WorkerId& worker, int code);
  void ExitedBySignal(const v1::WorkerId& worker, int signal);
  void Output(const v1::WorkerId& worker, const std::string& data, bool is_stderr = false);
  void Result(const v1::WorkerId& worker, const std::string& data);
  void OutputEnded(const v1::WorkerId& worker);
  void Notice(const v1::WorkerId& worker, const std::string& text);
  void HangUp();
  // As if its process were gone.
  void Die() { context_.TryCancel(); }

 private:
  void Run();
  void Handle(const v1::DriverMessage& message);
  void Say(const v1::AgentMessage& message) ABSL_LOCKS_EXCLUDED(mutex_);

  const AgentStart start_;
  const Behaviour behaviour_;
  const std::function<void(absl::Status)> ended_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DriverMessage>> stream_;
  Mutex mutex_;  // of writing
  bool hung_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Starts ScriptedAgents. Behaviour by host; "" for all others.
class ScriptedAgentStarter final : public AgentStarter {
 public:
  std::map<std::string, ScriptedAgent::Behaviour> behaviours;
  // Hosts on which nothing can be started, and why.
  std::map<std::string, absl::Status> refusals;

  void Start(const AgentStart& start, AgentStartEvents events) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Kill(const std::string& host) override ABSL_LOCKS_EXCLUDED(mutex_);

  int kills() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<ScriptedAgent>> agents_ ABSL_GUARDED_BY(mutex_);
  int kills_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace farandole
