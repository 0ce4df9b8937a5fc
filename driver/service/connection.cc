#include "driver/service/connection.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "driver/core/host_step.h"
#include "driver/service/peer_certificate.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace

std::shared_ptr<Connection> Connection::Make(grpc::CallbackServerContext* context, const AgentServiceOptions& options,
                                             AgentRegistry* registry, AgentListener* listener) {
  std::shared_ptr<Connection> connection(new Connection(context, options, registry, listener));
  connection->self_ = connection;
  return connection;
}

void Connection::Begin() { StartRead(&in_); }

void Connection::OnReadDone(bool ok) {
  if (!ok) return EndOfStream(absl::OkStatus());
  const absl::Status status = agent_ ? TakeWord() : TakeHello();
  if (!status.ok()) return EndOfStream(status);
  in_.Clear();
  StartRead(&in_);
}

absl::Status Connection::TakeHello() {
  ASSIGN_OR_RETURN(AgentHello hello, HelloFromProto(in_));
  RETURN_IF_ERROR(CheckPeerCertificate(*context_, options_.job, hello.agent));
  {
    // First in the queue, whatever is sent to the agent as soon as it is registered.
    MutexLock lock(&mutex_);
    out_.push_front(WelcomeToProto(options_.heartbeat_interval, options_.output_window));
  }
  RETURN_IF_ERROR(registry_->Register(hello, self_));
  agent_ = hello.agent;
  Event next = AgentReady{agent_->host, agent_->incarnation, std::move(hello.addresses)};
  {
    MutexLock lock(&mutex_);
    registered_ = true;
    if (!InputSent()) {
      ready_ = std::get<AgentReady>(std::move(next));
      next = AgentProgress{agent_->host, agent_->incarnation, HostStep::kCallBack,
                           "it has called back and is being sent what its workers read"};
    }
    WriteNext();
  }
  listener_->OnEvent(std::move(next));
  return absl::OkStatus();
}

absl::Status Connection::TakeWord() {
  ASSIGN_OR_RETURN(AgentWord word, FromProto(in_, *agent_));
  if (auto* event = std::get_if<Event>(&word)) {
    listener_->OnEvent(std::move(*event));
  } else if (auto* piece = std::get_if<OutputPiece>(&word)) {
    RETURN_IF_ERROR(CountOutput(static_cast<int64_t>(piece->data.size())));
    listener_->OnOutput(*agent_, std::move(*piece));
  } else if (auto* end = std::get_if<OutputEnd>(&word)) {
    listener_->OnOutputEnd(std::move(*end));
  } else {
    listener_->OnNotice(std::move(std::get<NoticeForPeople>(word)));
  }
  return absl::OkStatus();
}

absl::Status Connection::CountOutput(int64_t bytes) {
  MutexLock lock(&mutex_);
  unwritten_output_ += bytes;
  if (unwritten_output_ <= options_.output_window) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("output: ", unwritten_output_, " bytes are on the way, and ",
                                                 options_.output_window, " were allowed"));
}

void Connection::ReturnCredit(int64_t bytes) {
  MutexLock lock(&mutex_);
  unwritten_output_ -= bytes;
  out_.push_back(CreditToProto(bytes));
  WriteNext();
}

void Connection::Send(v1::DriverMessage message) {
  MutexLock lock(&mutex_);
  out_.push_back(std::move(message));
  WriteNext();
}

void Connection::SendEnd(v1::DriverMessage message) {
  MutexLock lock(&mutex_);
  told_to_end_ = true;
  out_.push_back(std::move(message));
  WriteNext();
}

void Connection::Cancel() {
  MutexLock lock(&mutex_);
  if (!done_) context_->TryCancel();
}

bool Connection::registered() const {
  MutexLock lock(&mutex_);
  return registered_;
}

void Connection::EndOfStream(const absl::Status& error) {
  bool in_order = false;
  {
    MutexLock lock(&mutex_);
    in_order = told_to_end_ && error.ok();
  }
  if (agent_) {
    registry_->Unregister(*agent_);
    if (in_order) {
      listener_->OnEvent(AgentEnded{agent_->host, agent_->incarnation});
    } else {
      const std::string reason = error.ok() ? "its connection to the driver was closed"
                                            : absl::StrCat("it sent what is no message of ours: ", error.message());
      listener_->OnEvent(AgentFailed{agent_->host, agent_->incarnation, reason});
    }
  }
  MutexLock lock(&mutex_);
  result_ = ToGrpc(error);
  if (!writing_) Finish(*result_);
}

// Reactions never run inside the calls that cause them (gRPC queues them), so they may be made with the lock held.
void Connection::WriteNext() {
  if (writing_ || !registered_ || result_) return;
  if (out_.empty()) QueueInput();
  if (out_.empty()) return;
  writing_ = true;
  StartWrite(&out_.front());
}

bool Connection::InputSent() const {
  return options_.worker_input == nullptr || input_queued_ == options_.worker_input->size();
}

void Connection::QueueInput() {
  if (told_to_end_ || InputSent()) return;
  const absl::string_view piece = absl::string_view(*options_.worker_input).substr(input_queued_, kMaxInputPiece);
  out_.push_back(InputToProto(piece));
  input_queued_ += piece.size();
}

void Connection::OnWriteDone(bool ok) {
  absl::optional<AgentReady> ready;
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    out_.pop_front();
    if (result_) return Finish(*result_);
    if (!ok) return;  // the call is broken: the read says so
    if (InputSent()) ready = std::exchange(ready_, absl::nullopt);
    WriteNext();
  }
  if (ready) listener_->OnEvent(*std::move(ready));
}

void Connection::OnDone() {
  {
    MutexLock lock(&mutex_);
    done_ = true;
  }
  registry_->Forget(self_);
  const std::shared_ptr<Connection> last = std::move(self_);
}

}  // namespace farandole
