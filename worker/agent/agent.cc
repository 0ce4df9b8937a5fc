#include "worker/agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/rpc/tls_dialer.h"
#include "proto/rpc/tls_names.h"
#include "proto/rpc/unix_server.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/event_loop.h"
#include "tools/base/log.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/base/version.h"
#include "worker/agent/driver_link.h"
#include "worker/agent/host_addresses.h"
#include "worker/agent/output_pump.h"
#include "worker/agent/relays.h"
#include "worker/agent/slab_broker.h"
#include "worker/agent/spawner.h"
#include "worker/agent/worker_environment.h"
#include "worker/agent/worker_input.h"
#include "worker/agent/worker_processes.h"
#include "worker/agent/worker_service.h"

namespace farandole {
namespace {

constexpr int kProtocol = 1;

// A driver on the same machine answers in a millisecond; one that does not is stopped, or none of ours.
constexpr absl::Duration kWelcomeTimeout = absl::Seconds(30);

// A driver that does not answer for so long is behind a firewall, or has other addresses than its host knows.
constexpr absl::Duration kCallBackTimeout = absl::Seconds(10);

// For hosts that are reached through this one to end, when this one has: they have been told to as well.
constexpr absl::Duration kRelayTimeout = absl::Seconds(2);

// For killed processes to end, and then for the driver to end the stream. Both take milliseconds.
constexpr absl::Duration kKillTimeout = absl::Seconds(3);
constexpr absl::Duration kCloseTimeout = absl::Seconds(2);

class AgentImpl final : public Agent {
 public:
  explicit AgentImpl(Bootstrap bootstrap) : bootstrap_(std::move(bootstrap)) {}
  ~AgentImpl() override {
    if (server_ != nullptr) server_->Shutdown(Now());
  }

  absl::Status Open() {
    ASSIGN_OR_RETURN(slabs_, SlabBroker::Start(&loop_, {}));
    service_ = std::make_unique<WorkerService>(
        WorkerService::Told{bootstrap_.job_key, slabs_->socket()},
        [this](AgentReport report) { loop_.Post([this, report] { OnWorkerSays(report); }); });
    ASSIGN_OR_RETURN(server_, UnixServer::Start({service_.get()}), std::move(_) << "the workers' service");
    sigset_t term;
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    term_.reset(::signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!term_) return ErrnoStatus(errno, "signalfd");
    const DialOptions options{{bootstrap_.ca_certificate, bootstrap_.certificate, bootstrap_.private_key},
                              DriverTlsName(bootstrap_.job),
                              bootstrap_.lost_after};
    ASSIGN_OR_RETURN(Dialled driver, DialFirst(bootstrap_.driver_addresses, options, Now() + kCallBackTimeout),
                     std::move(_) << "cannot call back the driver from host " << bootstrap_.host);
    LOG(INFO) << "the driver is at " << driver.address;
    relays_ = std::make_unique<AgentRelays>(&loop_, driver.channel, [this] { GoOn(); });
    link_ =
        std::make_unique<DriverLink>(std::move(driver.channel), &loop_,
                                     DriverLink::Events{[this](AgentCommand command) { OnCommand(std::move(command)); },
                                                        [this](const absl::Status& status) { OnStreamEnd(status); }});
    return absl::OkStatus();
  }

  int Run() override {
    loop_.Watch(term_.get(), EPOLLIN, [this](uint32_t) { OnTerm(); });
    loop_.Watch(STDIN_FILENO, EPOLLIN, [this](uint32_t) { OnInput(); });
    timer_ = loop_.At(Now() + kWelcomeTimeout, [this] {
      Begin(1, SIGTERM, absl::StrCat("the driver did not answer within ", absl::FormatDuration(kWelcomeTimeout)));
    });
    link_->Send(AgentRegistration{kProtocol, kProtocol, bootstrap_.job, bootstrap_.host, bootstrap_.incarnation,
                                  kVersion, ::getpid(), HostAddresses()});
    loop_.Run();
    return exit_code_;
  }

 private:
  // What an agent goes through; it only moves on.
  enum class Phase {
    kRegistering,
    kServing,
    kEnding,    // workers are being ended
    kKilling,   // none is left; what they left behind is being killed
    kSending,   // nothing is left; their output is on its way
    kRelaying,  // it has arrived; hosts that are reached through this one are ending
    kClosing,   // the stream is being ended
  };

  // --- The driver
  // -----------------------------------------------------------------------------------------------------------

  void OnCommand(AgentCommand command) {
    std::visit([this](auto& command) { On(command); }, command);
  }

  void On(const Welcomed& welcome) {
    if (phase_ != Phase::kRegistering) return;
    if (welcome.protocol != kProtocol) {
      return Begin(1, SIGTERM, absl::StrCat("the driver speaks protocol ", welcome.protocol, ", not ", kProtocol));
    }
    phase_ = Phase::kServing;
    loop_.Cancel(timer_);
    heartbeat_interval_ = welcome.heartbeat_interval;
    pump_ = std::make_unique<OutputPump>(&loop_, welcome.output_credit, [this](AgentReport report) {
      const bool ended = std::holds_alternative<WorkerOutputEnded>(report);
      link_->Send(report);
      if (ended) loop_.Post([this] { GoOn(); });
    });
    Beat();
  }

  void On(SpawnProgram& spawn) {
    const WorkerId worker = spawn.worker;
    if (phase_ != Phase::kServing) {
      return link_->Send(WorkerStartFailed{worker, ECANCELED, "the agent is ending"});
    }
    if (processes_.Has(worker.incarnation)) return;
    absl::StatusOr<UniqueFd> input = spawn.has_input ? input_.Open() : UniqueFd();
    if (!input.ok()) {
      return link_->Send(WorkerStartFailed{worker, EIO, std::string(input.status().message())});
    }
    service_->Add(worker);
    std::vector<std::string> variables = VariablesFor(spawn);
    processes_.Start(
        worker, Program{std::move(spawn.arguments), WithVariables(std::move(spawn.environment), std::move(variables)),
                        std::move(spawn.working_directory), *std::move(input), spawn.wants_result});
  }

  std::vector<std::string> VariablesFor(const SpawnProgram& spawn) const {
    const std::string data_addresses =
        spawn.data_addresses.empty() ? bootstrap_.data_address : absl::StrJoin(spawn.data_addresses, ",");
    std::vector<std::string> variables = WorkerVariables(spawn.worker.incarnation, server_->address(), data_addresses);
    if (spawn.wants_result) variables.push_back(ResultVariable(kResultFd));
    return variables;
  }

  // What fails here is told for each worker that would read it.
  void On(const TakeInput& input) {
    const absl::Status status = input_.Append(input.piece);
    if (!status.ok()) LOG(WARNING) << status.message();
  }

  void On(const SendSignal& command) { processes_.Signal(command.worker.incarnation, command.signal); }

  void On(const AdoptAssignment& assignment) {
    if (assignment.generation <= generation_) return;
    generation_ = assignment.generation;
    slabs_->ForgetAll();
    service_->Publish(assignment.generation, assignment.members);
  }

  void On(const GrantOutput& grant) {
    if (pump_ != nullptr) pump_->Grant(grant.bytes);
  }

  void On(const OpenRelay& wanted) {
    if (phase_ == Phase::kServing) return relays_->Open(wanted);
    relays_->Refuse(wanted, "the agent is ending");
  }

  void On(const EndAll& end) {
    LOG(INFO) << "told to end: " << end.reason;
    told_to_end_ = true;
    // Whoever got a grace had it from the driver.
    Begin(0, SIGKILL, "");
  }

  void OnStreamEnd(const absl::Status& status) {
    stream_ended_ = true;
    if (phase_ == Phase::kClosing) return loop_.Stop();
    if (phase_ == Phase::kRegistering && !status.ok()) {
      return DriverGone(absl::StrCat("the driver refused this agent: ", status.message()));
    }
    DriverGone(absl::IsInvalidArgument(status) ? absl::StrCat("the driver made no sense: ", status.message())
                                               : "the driver is gone");
  }

  void OnInput() {
    char nothing[256];
    const ssize_t n = ::read(STDIN_FILENO, nothing, sizeof nothing);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;  // nobody has anything more to say there
    loop_.Unwatch(STDIN_FILENO);
    if (!bootstrap_.input_may_end) DriverGone("the launcher is gone");
  }

  void DriverGone(const std::string& why) {
    if (pump_ != nullptr) pump_->Discard();
    if (told_to_end_) return GoOn();
    Begin(1, SIGTERM, why);
    GoOn();
  }

  void OnTerm() {
    signalfd_siginfo info;
    if (::read(term_.get(), &info, sizeof info) == sizeof info) Begin(1, SIGTERM, "this agent got SIGTERM");
  }

  void Beat() {
    link_->SendHeartbeat();
    processes_.ReapStrays();
    heartbeat_ = loop_.At(Now() + heartbeat_interval_, [this] { Beat(); });
  }

  // --- The workers
  // ----------------------------------------------------------------------------------------------------------

  void OnStarted(const WorkerId& worker, Process* process) {
    LOG(INFO) << "worker " << worker << " is process " << process->pid;
    link_->Send(WorkerStarted{worker, process->pid});
    pump_->Add(worker, std::move(process->stdout_pipe), std::move(process->stderr_pipe),
               std::move(process->result_pipe));
  }

  void OnStartFailed(const WorkerId& worker, const SpawnError& error) {
    service_->Remove(worker);
    link_->Send(WorkerStartFailed{worker, error.error, error.what});
    GoOn();
  }

  void OnExited(const WorkerId& worker, ExitStatus status, bool out_of_memory) {
    service_->Remove(worker);
    link_->Send(WorkerExited{worker, status, out_of_memory});
    pump_->WorkerExited(worker);
    GoOn();
  }

  // What a worker's library has said, on its way to the driver.
  void OnWorkerSays(const AgentReport& report) {
    if (const auto* joined = std::get_if<WorkerJoined>(&report)) {
      processes_.ConfirmStarted(joined->worker.incarnation);
    }
    link_->Send(report);
  }

  // --- The end
  // --------------------------------------------------------------------------------------------------------------

  // Begins to end with `signal` to every worker; TERM is followed by KILL after the grace. The first exit code counts,
  // and a KILL hurries an end that has begun with TERM.
  void Begin(int exit_code, int signal, const std::string& why) {
    if (phase_ >= Phase::kKilling) return;
    if (phase_ < Phase::kEnding) {
      phase_ = Phase::kEnding;
      exit_code_ = exit_code;
      if (!why.empty()) LOG(WARNING) << why << (processes_.size() > 0 ? "; ending this host's workers" : "");
      if (!why.empty() && link_ != nullptr) link_->Send(AgentEndsItself{why});
    } else if (signal != SIGKILL) {
      return;
    }
    loop_.Cancel(timer_);
    service_->Close();
    processes_.SignalAll(signal);
    if (signal != SIGKILL) {
      timer_ = loop_.At(Now() + bootstrap_.grace, [this] { processes_.SignalAll(SIGKILL); });
    }
    GoOn();
  }

  // Takes the steps of the end that can be taken now.
  void GoOn() {
    if (phase_ == Phase::kEnding && processes_.size() == 0) {
      phase_ = Phase::kKilling;
      loop_.Cancel(timer_);
      return processes_.KillStrays(Now() + kKillTimeout, [this] {
        phase_ = Phase::kSending;
        GoOn();
      });
    }
    if (phase_ == Phase::kSending && (pump_ == nullptr || pump_->empty())) {
      phase_ = Phase::kRelaying;
      timer_ = loop_.At(Now() + kRelayTimeout, [this] {
        relays_over_ = true;
        GoOn();
      });
    }
    if (phase_ == Phase::kRelaying && (relays_->empty() || relays_over_ || stream_ended_)) {
      phase_ = Phase::kClosing;
      loop_.Cancel(timer_);
      loop_.Cancel(heartbeat_);
      link_->Finish();
      loop_.At(Now() + kCloseTimeout, [this] { loop_.Stop(); });
    }
    if (phase_ == Phase::kClosing && stream_ended_) loop_.Stop();
  }

  const Bootstrap bootstrap_;
  EventLoop loop_;
  Phase phase_ = Phase::kRegistering;
  int exit_code_ = 1;
  bool told_to_end_ = false;
  bool stream_ended_ = false;
  bool relays_over_ = false;  // they have had their time
  Generation generation_;
  absl::Duration heartbeat_interval_;
  EventLoop::TimerId timer_ = 0;  // welcome, then grace
  EventLoop::TimerId heartbeat_ = 0;

  UniqueFd term_;
  WorkerInput input_;
  std::unique_ptr<SlabBroker> slabs_;
  std::unique_ptr<WorkerService> service_;
  std::unique_ptr<UnixServer> server_;
  std::unique_ptr<DriverLink> link_;
  std::unique_ptr<AgentRelays> relays_;
  std::unique_ptr<OutputPump> pump_;  // once welcome
  WorkerProcesses processes_{&loop_,
                             {[this](const WorkerId& worker, Process* process) { OnStarted(worker, process); },
                              [this](const WorkerId& worker, const SpawnError& error) { OnStartFailed(worker, error); },
                              [this](const WorkerId& worker, ExitStatus status, bool out_of_memory) {
                                OnExited(worker, status, out_of_memory);
                              }}};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(Bootstrap bootstrap) {
  auto agent = std::make_unique<AgentImpl>(std::move(bootstrap));
  RETURN_IF_ERROR(agent->Open());
  return agent;
}

}  // namespace farandole
