#include "driver/runtime/driver_runtime.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "driver/core/driver_core.h"
#include "driver/core/events.h"
#include "driver/core/host_step.h"
#include "driver/runtime/mailbox.h"
#include "driver/runtime/output_writer.h"
#include "driver/runtime/service_gate.h"
#include "driver/security/job_authority.h"
#include "driver/service/agent_service.h"
#include "proto/convert/driver_convert.h"
#include "tools/base/check.h"
#include "tools/base/clock.h"
#include "tools/base/event_loop.h"
#include "tools/base/instant.h"
#include "tools/base/log.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr int64_t kOutputWindow = 1 << 20;
// Given back in steps, so that a chatty worker costs few messages and never waits while its output flows.
constexpr int64_t kCreditStep = kOutputWindow / 4;
// A sink that holds a piece longer than this is not merely slow: a pager, or a stopped terminal.
constexpr absl::Duration kHeld = absl::Milliseconds(200);

class DriverRuntimeImpl final : public DriverRuntime, private AgentListener {
 public:
  explicit DriverRuntimeImpl(DriverRuntimeOptions options)
      : options_(std::move(options)),
        core_(options_.config, RandomId()),
        mailbox_(std::make_shared<Mailbox>([this] { loop_.Post([this] { TakeMail(); }); })),
        writer_(options_.output, kCreditStep,
                [this](const AgentIdentity& agent, int64_t bytes) { service_->ReturnCredit(agent, bytes); }) {}

  ~DriverRuntimeImpl() override {
    mailbox_->Close();
    if (gate_ != nullptr) gate_->Close();
    service_.reset();  // before what it reports to
  }

  absl::Status Open() {
    if (options_.has_remote_hosts) {
      ASSIGN_OR_RETURN(authority_, JobAuthority::Create(options_.job));
    }
    AgentServiceOptions service;
    service.job = options_.job;
    service.heartbeat_interval = options_.config.heartbeat_interval;
    service.output_window = kOutputWindow;
    service.worker_input = options_.worker_input;
    service.authority = authority_.get();
    service.first_port = options_.first_port;
    service.last_port = options_.last_port;
    service.max_unproven += static_cast<int>(options_.config.hosts.size());
    ASSIGN_OR_RETURN(service_, AgentService::Start(std::move(service), this));
    gate_ = std::make_shared<ServiceGate>(service_.get());
    return absl::OkStatus();
  }

  Verdict Run() override {
    Actions actions;
    core_.Start(Now(), &actions);
    AfterCore(actions, /*view_may_differ=*/true);
    loop_.Run();
    mailbox_->Close();
    only_output_is_left_ = true;
    // The agents are gone. What they had sent is still read: a stream ends after its last byte.
    service_->Shutdown(Now() + options_.config.end_timeout);
    output_given_up_ = !writer_.Finish();
    CHECK(verdict_) << "the loop ended before the job";
    return *verdict_;
  }

  bool output_given_up() const override { return output_given_up_; }

  AgentServiceStats listeners() const override { return service_->stats(); }

  void Interrupt(int signal) override {
    if (++interrupts_ >= 2 || only_output_is_left_) writer_.HurryUp();
    mailbox_->Post(Interrupted{signal});
  }

 private:
  // --- AgentListener: on gRPC's threads.
  void OnEvent(Event event) override { mailbox_->Post(std::move(event)); }
  void OnOutput(const AgentIdentity& from, OutputPiece piece) override { writer_.Write(from, std::move(piece)); }
  void OnOutputEnd(OutputEnd end) override { writer_.End(std::move(end)); }
  void OnNotice(NoticeForPeople notice) override {
    mailbox_->Post(WorkerSawLoss{notice.worker, notice.generation});
    writer_.Write(AgentIdentity(),  // no agent's credit
                  OutputPiece{notice.worker, OutputStream::kStderr, absl::StrCat("farandole: ", notice.text, "\n")});
  }

  // --- The loop.
  void TakeMail() {
    Actions actions;
    bool view_may_differ = false;
    for (const Event& event : mailbox_->Take()) {
      view_may_differ |= !std::holds_alternative<AgentHeard>(event);
      core_.Step(Now(), Admitted(event), &actions);
      // Each step of a host is shown, also when the next one is here already.
      if (std::holds_alternative<AgentProgress>(event) && options_.on_view) PublishView();
    }
    AfterCore(actions, view_may_differ);
  }

  // The event, or what the launcher makes of it.
  Event Admitted(const Event& event) const {
    const AgentReady* const ready = std::get_if<AgentReady>(&event);
    if (ready == nullptr || !options_.admit) return event;
    const absl::Status status = options_.admit(ready->host, ready->addresses);
    if (status.ok()) return event;
    return AgentFailed{ready->host, ready->incarnation, std::string(status.message())};
  }

  void OnTimer() {
    timer_ = 0;
    Actions actions;
    if (writer_.HeldFor(Now()) > kHeld) core_.Step(Now(), OutputHeld{}, &actions);
    core_.Tick(Now(), &actions);
    AfterCore(actions, /*view_may_differ=*/!actions.empty());
  }

  // What follows a batch of calls of the core, once it has returned.
  void AfterCore(const Actions& actions, bool view_may_differ) {
    // Not after mere signs of life: of many hosts they are many, and change nothing that could break.
    if (const absl::Status status = view_may_differ ? core_.CheckInvariants() : absl::OkStatus(); !status.ok()) {
      LOG(ERROR) << "driver: " << status.message();
    }
    for (const Action& action : actions) {
      if (options_.on_reason) options_.on_reason(ToString(action));
      std::visit([this](const auto& one) { this->Do(one); }, action);
    }
    if (view_may_differ && options_.on_view) PublishView();
    ArmTimer();
  }

  void PublishView() {
    DriverView view = core_.View();
    if (published_ == view) return;
    published_ = std::move(view);
    options_.on_view(*published_);
  }

  void ArmTimer() {
    const Instant next = core_.NextDeadline();
    if (timer_ != 0 && next == timer_at_) return;
    if (timer_ != 0) loop_.Cancel(timer_);
    timer_ = next.is_infinite() ? 0 : loop_.At(next, [this] { OnTimer(); });
    timer_at_ = next;
  }

  // --- Actions.
  void Do(const StartAgent& action) {
    const AgentIdentity agent{action.host, action.incarnation};
    service_->Expect(agent);
    AgentStartEvents events;
    events.reached = [mailbox = mailbox_, agent](HostStep step, std::string note) {
      mailbox->Post(AgentProgress{agent.host, agent.incarnation, step, std::move(note)});
    };
    events.failed = [mailbox = mailbox_, agent](absl::Status status) {
      mailbox->Post(AgentFailed{agent.host, agent.incarnation, std::string(status.message())});
    };
    AgentStart start;
    if (const absl::Status status = PrepareStart(agent, &start); !status.ok()) return events.failed(status);
    options_.starter->Start(start, std::move(events));
  }
  absl::Status PrepareStart(const AgentIdentity& agent, AgentStart* start) {
    start->job = options_.job;
    start->host = agent.host;
    start->incarnation = agent.incarnation;
    start->job_key = options_.job_key;
    start->local_address = service_->address();
    if (authority_ == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(start->credentials, authority_->IssueAgent(agent.host, agent.incarnation));
    start->listen = [gate = gate_](const std::string& address) { return gate->Listen(address); };
    start->open_relay = [gate = gate_](const std::string& via, const std::string& address, int port, Instant deadline,
                                       RelayDone done) {
      gate->OpenRelay(via, address, port, deadline, std::move(done));
    };
    return absl::OkStatus();
  }
  void Do(const SpawnWorker& action) {
    writer_.AddWorker(action.worker, action.placement.rank);
    service_->Spawn(action, options_.command(action.worker, action.placement));
  }
  void Do(const SendAssignment& action) { service_->Assign(action); }
  void Do(const SignalWorker& action) { service_->Signal(action); }
  void Do(const EndAgent& action) {
    if (!action.force && service_->End(action)) return;
    service_->Drop({action.host, action.incarnation});
    options_.starter->Kill(action.host);
  }
  void Do(const EndJob& action) {
    verdict_ = action.verdict;
    loop_.Stop();
  }

  const DriverRuntimeOptions options_;
  EventLoop loop_;
  DriverCore core_;
  absl::optional<DriverView> published_;
  EventLoop::TimerId timer_ = 0;
  Instant timer_at_;
  absl::optional<Verdict> verdict_;

  std::atomic<int> interrupts_ = 0;
  std::atomic<bool> only_output_is_left_ = false;
  bool output_given_up_ = false;

  const std::shared_ptr<Mailbox> mailbox_;
  std::unique_ptr<JobAuthority> authority_;  // null: all hosts are this machine
  OutputWriter writer_;                      // its thread calls the service
  std::unique_ptr<AgentService> service_;    // its threads call the writer and the mailbox
  std::shared_ptr<ServiceGate> gate_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DriverRuntime>> DriverRuntime::Create(DriverRuntimeOptions options) {
  if (const std::vector<std::string> problems = options.config.Validate(); !problems.empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(problems, "; "));
  }
  CHECK(options.command && options.starter != nullptr && options.output != nullptr) << "options are missing";
  auto runtime = std::make_unique<DriverRuntimeImpl>(std::move(options));
  RETURN_IF_ERROR(runtime->Open());
  return std::unique_ptr<DriverRuntime>(std::move(runtime));
}

}  // namespace farandole
