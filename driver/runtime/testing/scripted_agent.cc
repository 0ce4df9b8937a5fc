#include "driver/runtime/testing/scripted_agent.h"

#include <utility>

#include "proto/rpc/unix_server.h"
#include "tools/base/check.h"

namespace farandole {

ScriptedAgent::ScriptedAgent(AgentStart start, Behaviour behaviour, std::function<void(absl::Status)> ended)
    : start_(std::move(start)), behaviour_(std::move(behaviour)), ended_(std::move(ended)) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = ConnectUnix(start_.local_address);
  CHECK(channel.ok()) << channel.status();
  stub_ = v1::AgentService::NewStub(*channel);
  stream_ = stub_->Connect(&context_);
  thread_ = std::thread([this] { Run(); });
}

ScriptedAgent::~ScriptedAgent() {
  Die();
  thread_.join();
}

void ScriptedAgent::Run() {
  if (behaviour_.registers) {
    v1::AgentMessage message;
    v1::Register* hello = message.mutable_register_();
    hello->set_protocol_min(1);
    hello->set_protocol_max(1);
    hello->set_job(start_.job);
    hello->set_host(start_.host);
    hello->set_incarnation(start_.incarnation.value());
    Say(message);
  }
  v1::DriverMessage message;
  while (stream_->Read(&message)) Handle(message);
  const grpc::Status status = stream_->Finish();
  ended_(status.ok() ? absl::UnavailableError("the agent's process has ended")
                     : absl::UnavailableError("the agent's process has died"));
}

void ScriptedAgent::Handle(const v1::DriverMessage& message) {
  if (message.has_spawn() && behaviour_.program) {
    behaviour_.program(*this, message.spawn());
  } else if (message.has_input() && behaviour_.on_input) {
    behaviour_.on_input(*this, message.input());
  } else if (message.has_assignment() && behaviour_.on_assignment) {
    behaviour_.on_assignment(*this, message.assignment());
  } else if (message.has_output_credit() && behaviour_.on_credit) {
    behaviour_.on_credit(*this, message.output_credit());
  } else if (message.has_signal()) {
    if (behaviour_.on_signal) {
      behaviour_.on_signal(*this, message.signal());
    } else {
      ExitedBySignal(message.signal().worker(), static_cast<int>(message.signal().signal()));
    }
  } else if (message.has_end()) {
    if (behaviour_.on_end) {
      behaviour_.on_end(*this, message.end());
    } else {
      HangUp();
    }
  }
}

void ScriptedAgent::Say(const v1::AgentMessage& message) {
  MutexLock lock(&mutex_);
  if (!hung_up_) stream_->Write(message);
}

void ScriptedAgent::HangUp() {
  MutexLock lock(&mutex_);
  if (!hung_up_) stream_->WritesDone();
  hung_up_ = true;
}

void ScriptedAgent::Started(const v1::WorkerId& worker) {
  v1::AgentMessage message;
  *message.mutable_worker_started()->mutable_worker() = worker;
  message.mutable_worker_started()->set_pid(1);
  Say(message);
}

void ScriptedAgent::StartFailed(const v1::WorkerId& worker, int error, const std::string& what) {
  v1::AgentMessage message;
  *message.mutable_worker_start_failed()->mutable_worker() = worker;
  message.mutable_worker_start_failed()->set_error(static_cast<uint32_t>(error));
  message.mutable_worker_start_failed()->set_what(what);
  Say(message);
}

void ScriptedAgent::Joined(const v1::WorkerId& worker, uint64_t after) {
  v1::AgentMessage message;
  *message.mutable_worker_joined()->mutable_worker() = worker;
  message.mutable_worker_joined()->set_endpoint("127.0.0.1:1");
  message.mutable_worker_joined()->set_after_generation(after);
  Say(message);
}

void ScriptedAgent::Left(const v1::WorkerId& worker, uint64_t generation) {
  v1::AgentMessage message;
  *message.mutable_worker_left()->mutable_worker() = worker;
  message.mutable_worker_left()->set_generation(generation);
  Say(message);
}

void ScriptedAgent::Exited(const v1::WorkerId& worker, int code) {
  v1::AgentMessage message;
  *message.mutable_worker_exited()->mutable_worker() = worker;
  message.mutable_worker_exited()->mutable_status()->set_code(static_cast<uint32_t>(code));
  Say(message);
}

void ScriptedAgent::ExitedBySignal(const v1::WorkerId& worker, int signal) {
  v1::AgentMessage message;
  *message.mutable_worker_exited()->mutable_worker() = worker;
  message.mutable_worker_exited()->mutable_status()->set_signal(static_cast<uint32_t>(signal));
  Say(message);
}

void ScriptedAgent::Output(const v1::WorkerId& worker, const std::string& data, bool is_stderr) {
  v1::AgentMessage message;
  *message.mutable_output()->mutable_worker() = worker;
  message.mutable_output()->set_stream(is_stderr ? v1::Output::STDERR : v1::Output::STDOUT);
  message.mutable_output()->set_data(data);
  Say(message);
}

void ScriptedAgent::Result(const v1::WorkerId& worker, const std::string& data) {
  v1::AgentMessage message;
  *message.mutable_output()->mutable_worker() = worker;
  message.mutable_output()->set_stream(v1::Output::RESULT);
  message.mutable_output()->set_data(data);
  Say(message);
}

void ScriptedAgent::OutputEnded(const v1::WorkerId& worker) {
  v1::AgentMessage message;
  *message.mutable_output_ended()->mutable_worker() = worker;
  Say(message);
}

void ScriptedAgent::Notice(const v1::WorkerId& worker, const std::string& text) {
  v1::AgentMessage message;
  *message.mutable_worker_notice()->mutable_worker() = worker;
  message.mutable_worker_notice()->set_text(text);
  Say(message);
}

void ScriptedAgentStarter::Start(const AgentStart& start, AgentStartEvents events) {
  events.reached(HostStep::kAgent, "");
  const auto refusal = refusals.find(start.host);
  if (refusal != refusals.end()) return events.failed(refusal->second);
  const auto behaviour = behaviours.count(start.host) > 0 ? behaviours[start.host] : behaviours[""];
  MutexLock lock(&mutex_);
  agents_[start.host] = std::make_unique<ScriptedAgent>(start, behaviour, std::move(events.failed));
}

void ScriptedAgentStarter::Kill(const std::string& host) {
  MutexLock lock(&mutex_);
  ++kills_;
  const auto it = agents_.find(host);
  if (it != agents_.end()) it->second->Die();
}

int ScriptedAgentStarter::kills() const {
  MutexLock lock(&mutex_);
  return kills_;
}

}  // namespace farandole
