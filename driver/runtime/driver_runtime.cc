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
#include "driver/runtime/mailbox.h"
#include "driver/runtime/output_writer.h"
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
    service_.reset();  // before what it reports to
  }

  absl::Status Open() {
    ASSIGN_OR_RETURN(service_,
                     AgentService::Start({options_.job, options_.config.heartbeat_interval, kOutputWindow}, this));
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
    writer_.Write(AgentIdentity(),  // no agent's credit
                  OutputPiece{notice.worker, OutputStream::kStderr, absl::StrCat("farandole: ", notice.text, "\n")});
  }

  // --- The loop.
  void TakeMail() {
    Actions actions;
    bool view_may_differ = false;
    for (const Event& event : mailbox_->Take()) {
      view_may_differ |= !std::holds_alternative<AgentHeard>(event);
      core_.Step(Now(), event, &actions);
    }
    AfterCore(actions, view_may_differ);
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
    options_.starter->Start({options_.job, action.host, action.incarnation, service_->address(), options_.job_key},
                            [mailbox = mailbox_, agent](absl::Status status) {
                              mailbox->Post(AgentFailed{agent.host, agent.incarnation, std::string(status.message())});
                            });
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
  OutputWriter writer_;                    // its thread calls the service
  std::unique_ptr<AgentService> service_;  // its threads call the writer and the mailbox
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
