#include "launcher/exec/ssh_starter.h"

#include <atomic>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/exec/agent_program.h"
#include "launcher/exec/agent_push.h"
#include "launcher/exec/back_off.h"
#include "launcher/exec/bootstrap_writer.h"
#include "launcher/exec/dial_through.h"
#include "launcher/exec/helping_hosts.h"
#include "launcher/exec/line_tail.h"
#include "launcher/exec/own_addresses.h"
#include "launcher/ssh/await.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr size_t kLongestLine = 64 << 10;
constexpr absl::Duration kSlice = absl::Hours(1);  // of waiting for an agent that lives
constexpr absl::Duration kBootstrapTimeout = absl::Seconds(30);
constexpr absl::Duration kKillTime = absl::Seconds(1);  // of which the script itself may wait half
constexpr int kTriesThroughOthers = 2;

// Places for hosts that are being connected to.
class Places {
 public:
  explicit Places(int count) : free_(count) {}

  // False when `ended` holds first.
  bool Take(const std::atomic<bool>& ended) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    changed_.Await(&mutex_, [&] {
      mutex_.AssertHeld();
      return free_ > 0 || ended;
    });
    if (ended) return false;
    --free_;
    return true;
  }
  void Return() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++free_;
    changed_.NotifyAll();
  }
  // After `ended` of one that may wait was set.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int free_ ABSL_GUARDED_BY(mutex_);
};

std::string HowItEnded(const RemoteOutput& end) {
  if (end.signal.empty()) return absl::StrCat("ended with exit code ", end.exit_code);
  if (end.signal == "unknown") return "ended, and the host does not say how";
  return absl::StrCat("was ended by SIG", end.signal);
}

// One host's agent, from the first attempt to its end, on a thread of its own.
class HostRun {
 public:
  HostRun(const SshStarterOptions& options, AgentProgram& program, Places& places, HelpingHosts& helpers,
          AgentStart start, AgentStartEvents events)
      : options_(options),
        program_(program),
        places_(places),
        helpers_(helpers),
        start_(std::move(start)),
        events_(std::move(events)),
        back_off_(RandomId()),
        thread_([this] { Run(); }) {}

  ~HostRun() {
    End();
    thread_.join();
  }

  const std::string& host() const { return start_.host; }
  bool finished() const { return finished_; }

  void End() {
    if (ended_.exchange(true)) return;
    cancellation_.Cancel();
    places_.Wake();
    helpers_.Wake();
  }

 private:
  void Run() {
    const absl::Status status = Live();
    helpers_.Gone(start_.host);
    shell_.reset();
    events_.failed(status);
    finished_ = true;
  }

  absl::Status Live() {
    absl::StatusOr<RemoteAgent> agent = StartWithRetries();
    if (ended_ && !agent.ok()) {
      const std::string last = last_error_.ok() ? "" : absl::StrCat("; the last reason: ", last_error_.message());
      return absl::CancelledError(absl::StrCat("it was given up at the step \"", ToString(step_), "\"", last));
    }
    RETURN_IF_ERROR(agent.status());
    absl::Status status = Introduce(*agent);
    if (status.ok()) status = Watch(*agent);
    if (absl::IsCancelled(status)) status = EndAgent(*agent);
    return status;
  }

  absl::StatusOr<RemoteAgent> StartWithRetries() {
    for (int attempt = 1; !ended_; ++attempt) {
      absl::StatusOr<RemoteAgent> agent = Attempt();
      if (agent.ok() || !IsRetryable(agent.status())) return agent;
      last_error_ = agent.status();
      shell_.reset();
      Reach(step_, absl::StrCat(last_error_.message(), " (attempt ", attempt, ")"));
      // Nothing to wait for but the cancellation.
      AwaitAny({}, Now() + back_off_.Next(), cancellation_).IgnoreError();
    }
    return absl::CancelledError("ended");
  }

  absl::StatusOr<RemoteAgent> Attempt() {
    via_ = AwaitHelper();
    if (!places_.Take(ended_)) return absl::CancelledError("ended");
    absl::StatusOr<RemoteAgent> agent = StartOverSsh();
    places_.Return();
    if (!via_.empty() && IsRetryable(agent.status())) ++failed_tries_through_others_;
    return agent;
  }

  // The host to go through, once its agent is up; empty: none.
  std::string AwaitHelper() {
    if (!options_.via || failed_tries_through_others_ >= kTriesThroughOthers) return "";
    std::string via = options_.via(start_.host);
    if (via.empty()) return via;
    if (!helpers_.IsUp(via)) Reach(HostStep::kConnect, absl::StrCat("waits for host ", via));
    if (helpers_.Await(via, ended_)) return via;
    if (!ended_) Note(absl::StrCat("host ", via, " does not help to reach it"));
    return "";
  }

  absl::StatusOr<RemoteAgent> StartOverSsh() {
    ASSIGN_OR_RETURN(shell_, Connect());
    Reach(HostStep::kAgent, "");
    ASSIGN_OR_RETURN(RemoteAgent agent, StartRemoteAgent(*shell_, program_, Now() + options_.patience_push,
                                                         [this](absl::string_view text) { Note(text); }));
    Note(absl::StrCat("agent started as process ", agent.pid, via_.empty() ? "" : ", by way of host ", via_));
    return agent;
  }

  absl::StatusOr<std::unique_ptr<RemoteShell>> Connect() {
    RemoteTarget target = options_.target(start_.host);
    if (!via_.empty()) {
      target.connect = [this](const std::string& address, int port, Instant deadline) {
        return DialThrough(start_, via_, address, port, deadline, cancellation_);
      };
    }
    absl::StatusOr<std::unique_ptr<RemoteShell>> shell = options_.connector->Connect(
        target, Now() + options_.patience_connect, cancellation_, [this](HostStep step) { Reach(step, ""); });
    if (shell.ok() || via_.empty() || ended_ || IsRetryable(shell.status())) return shell;
    // Another host may have met another machine at this address: what counts is what is found from here.
    failed_tries_through_others_ = kTriesThroughOthers;
    return absl::UnavailableError(absl::StrCat("by way of host ", via_, ": ", shell.status().message()));
  }

  // Tells the agent who it is, and where the driver is.
  absl::Status Introduce(RemoteAgent& agent) {
    BootstrapOptions bootstrap;
    std::vector<std::string> reasons;
    for (const std::string& address : CallBackAddresses(agent.our_address, agent.its_address)) {
      absl::StatusOr<std::string> endpoint = start_.listen(address);
      if (endpoint.ok()) {
        bootstrap.driver_addresses.push_back(*std::move(endpoint));
      } else {
        reasons.emplace_back(endpoint.status().message());
      }
    }
    if (bootstrap.driver_addresses.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the driver can listen on no address for it",
                       reasons.empty() ? ": this machine has none" : absl::StrCat(": ", absl::StrJoin(reasons, "; "))));
    }
    bootstrap.grace = options_.grace;
    bootstrap.lost_after = options_.lost_after;
    bootstrap.input_may_end = !via_.empty();
    Note(absl::StrCat("the driver listens on ", absl::StrJoin(bootstrap.driver_addresses, ", ")));
    const absl::Status written = agent.process->Write(BootstrapMessage(start_, bootstrap), Now() + kBootstrapTimeout);
    // One that is dead already is told by its end, which has more to say.
    if (!written.ok() && !absl::IsFailedPrecondition(written)) return written;
    Reach(HostStep::kCallBack, "");
    helpers_.Up(start_.host);
    return absl::OkStatus();
  }

  // Passes on what it says until it ends. Always an error.
  absl::Status Watch(RemoteAgent& agent) {
    TakeOutput(agent.stdout_so_far);
    while (true) {
      const absl::StatusOr<RemoteOutput> output = agent.process->Read(Now() + kSlice);
      if (absl::IsDeadlineExceeded(output.status())) continue;
      if (IsRetryable(output.status()) && !via_.empty()) return WaitWithout(agent, output.status());
      RETURN_IF_ERROR(output.status()) << "the agent is out of reach";
      if (output->kind == RemoteOutput::Kind::kEnd) return Ended(*output);
      TakeOutput(output->bytes);
    }
  }

  // The way through another host is lost, perhaps with that host. The agent lives on, and the driver hears from itself
  // how it ends; what is left to do here is to end it by force, from here.
  absl::Status WaitWithout(RemoteAgent& agent, const absl::Status& lost) {
    Note(absl::StrCat("the way to its agent through host ", via_, " is lost: ", lost.message()));
    agent.process.reset();
    shell_.reset();
    AwaitAny({}, Instant::Infinite(), cancellation_).IgnoreError();
    cancellation_.Clear();
    const Instant deadline = Now() + options_.patience;
    ASSIGN_OR_RETURN(
        shell_, options_.connector->Connect(options_.target(start_.host), deadline, cancellation_, [](HostStep) {}),
        std::move(_) << "the agent is out of reach");
    RETURN_IF_ERROR(KillRemoteAgent(*shell_, program_, agent.pid, deadline)) << "the agent is out of reach";
    return absl::UnavailableError("the agent was ended by force, if it was still there");
  }

  absl::Status Ended(const RemoteOutput& end) const {
    const std::vector<std::string> words = last_words_.Lines();
    return absl::UnavailableError(
        absl::StrCat("the agent ", HowItEnded(end), words.empty() ? "" : "; it said: ", absl::StrJoin(words, " | ")));
  }

  // The end of its input is the sign to end; what does not is ended by a second process on the same connection.
  absl::Status EndAgent(RemoteAgent& agent) {
    cancellation_.Clear();
    agent.process->CloseInput();
    for (const bool by_force : {false, true}) {
      if (by_force) {
        Note("the agent does not end by itself: KILL");
        RETURN_IF_ERROR(KillRemoteAgent(*shell_, program_, agent.pid, Now() + options_.patience + kKillTime))
            << "the agent is out of reach, and was to end";
      }
      const Instant deadline = Now() + options_.patience;
      while (true) {
        const absl::StatusOr<RemoteOutput> output = agent.process->Read(deadline);
        if (absl::IsDeadlineExceeded(output.status())) break;
        RETURN_IF_ERROR(output.status()) << "the agent is out of reach, and was to end";
        if (output->kind == RemoteOutput::Kind::kEnd) return Ended(*output);
        TakeOutput(output->bytes);
      }
    }
    return absl::UnavailableError("the agent did not end, not even by KILL; its connection was closed");
  }

  void TakeOutput(absl::string_view bytes) {
    last_words_.Append(bytes);
    unfinished_line_.append(bytes.data(), bytes.size());
    size_t begin = 0;
    for (size_t end; (end = unfinished_line_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (options_.on_line) {
        options_.on_line(start_.host, absl::string_view(unfinished_line_).substr(begin, end - begin));
      }
    }
    unfinished_line_.erase(0, begin);
    if (unfinished_line_.size() > kLongestLine) unfinished_line_.clear();
  }

  void Reach(HostStep step, std::string note) {
    step_ = step;
    events_.reached(step, std::move(note));
  }

  void Note(absl::string_view text) {
    if (options_.on_note) options_.on_note(absl::StrCat("host ", start_.host, ": ", text));
  }

  const SshStarterOptions& options_;
  AgentProgram& program_;
  Places& places_;
  HelpingHosts& helpers_;
  const AgentStart start_;
  const AgentStartEvents events_;

  Cancellation cancellation_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> finished_{false};

  // The thread's.
  BackOff back_off_;
  HostStep step_ = HostStep::kResolve;
  absl::Status last_error_;
  std::string via_;  // of the last attempt: the host that it goes through; empty: none
  int failed_tries_through_others_ = 0;
  std::unique_ptr<RemoteShell> shell_;
  LineTail last_words_;
  std::string unfinished_line_;

  std::thread thread_;  // last: it uses all of the above
};

class SshStarterImpl : public SshStarter {
 public:
  SshStarterImpl(SshStarterOptions options, std::unique_ptr<AgentProgram> program)
      : options_(std::move(options)), program_(std::move(program)), places_(options_.parallel) {}

  ~SshStarterImpl() override {
    std::list<std::unique_ptr<HostRun>> runs;
    {
      MutexLock lock(&mutex_);
      runs.swap(runs_);
    }
    for (const auto& run : runs) run->End();  // all at once; then each is waited for
  }

  void Start(const AgentStart& start, AgentStartEvents events) override {
    MutexLock lock(&mutex_);
    runs_.remove_if([](const auto& run) { return run->finished(); });
    helpers_.Coming(start.host);
    runs_.push_back(std::make_unique<HostRun>(options_, *program_, places_, helpers_, start, std::move(events)));
  }

  void Kill(const std::string& host) override {
    MutexLock lock(&mutex_);
    for (const auto& run : runs_) {
      if (run->host() == host) run->End();
    }
  }

 private:
  const SshStarterOptions options_;
  const std::unique_ptr<AgentProgram> program_;
  Places places_;
  HelpingHosts helpers_;
  Mutex mutex_;
  std::list<std::unique_ptr<HostRun>> runs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<SshStarter>> SshStarter::Create(SshStarterOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<AgentProgram> program, AgentProgram::Load(options.agent_program));
  return std::make_unique<SshStarterImpl>(std::move(options), std::move(program));
}

}  // namespace farandole
