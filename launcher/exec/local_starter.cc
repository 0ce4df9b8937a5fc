#include "launcher/exec/local_starter.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/cli/env_names.h"
#include "launcher/exec/bootstrap_writer.h"
#include "launcher/exec/file_limit.h"
#include "launcher/exec/line_tail.h"
#include "launcher/exec/own_children.h"
#include "launcher/exec/processes.h"
#include "launcher/exec/signal_name.h"
#include "tools/base/check.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/event_loop.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

struct Pipe {
  UniqueFd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The pipe is new and empty and the message smaller than it (64 KiB), so this does not block.
absl::Status WriteAll(int fd, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "write the bootstrap");
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Executes `program` in a session of its own with nothing but the three standard descriptors, and with no signal
// blocked or SIGPIPE ignored as they are in this process.
absl::StatusOr<pid_t> Spawn(const std::string& program, int standard_input, int standard_error) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, standard_input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, standard_error, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, standard_error, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  char* const argv[] = {const_cast<char*>(program.c_str()), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), &files, &attributes, argv, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("execute the agent ", program));
  return pid;
}

std::string Describe(const ExitStatus& status) {
  if (status.signal != 0) return absl::StrCat("was ended by ", SignalName(status.signal));
  return absl::StrCat("ended with exit code ", status.code);
}

struct Agent {
  std::string host;
  AgentStartEvents events;
  pid_t pid = 0;
  UniqueFd process;
  UniqueFd standard_input;  // kept open: its end tells the agent that we are gone
  UniqueFd standard_error;
  std::string unfinished_line;
  LineTail last_words;
};

class LocalStarterImpl : public LocalStarter {
 public:
  explicit LocalStarterImpl(LocalStarterOptions options) : options_(std::move(options)) {
    for (const pid_t pid : ChildrenOfThisProcess()) not_ours_.insert(pid);
    thread_ = std::thread([this] { loop_.Run(); });
  }

  ~LocalStarterImpl() override {
    loop_.Post([this] { BeginFinish(); });
    {
      MutexLock lock(&mutex_);
      finished_changed_.Await(&mutex_, [this] {
        mutex_.AssertHeld();
        return finished_;
      });
    }
    loop_.Stop();
    thread_.join();
  }

  void Start(const AgentStart& start, AgentStartEvents events) override {
    loop_.Post([this, start, events = std::move(events)] {
      events.reached(HostStep::kAgent, "");
      const absl::Status status = StartOnLoop(start, events);
      if (!status.ok()) events.failed(status);
    });
  }

  void Kill(const std::string& host) override {
    loop_.Post([this, host] {
      for (const auto& [pid, agent] : agents_) {
        if (agent.host == host) SignalProcess(agent.process, SIGKILL);
      }
    });
  }

 private:
  absl::Status StartOnLoop(const AgentStart& start, const AgentStartEvents& events) {
    ASSIGN_OR_RETURN(Pipe input, MakePipe());
    ASSIGN_OR_RETURN(Pipe error, MakePipe());
    ASSIGN_OR_RETURN(const pid_t pid, Spawn(options_.agent_program, input.read.get(), error.write.get()));
    // A child that we have not collected: it cannot fail but for a lack of descriptors, and then the sweep gets it.
    ASSIGN_OR_RETURN(UniqueFd process, OpenProcess(pid));
    GiveOriginalFileLimit(pid);
    Agent& agent = agents_[pid];
    agent.host = start.host;
    agent.events = events;
    agent.pid = pid;
    agent.process = std::move(process);
    agent.standard_input = std::move(input.write);
    agent.standard_error = std::move(error.read);
    ::fcntl(agent.standard_error.get(), F_SETFL, O_NONBLOCK);
    loop_.Watch(agent.process.get(), EPOLLIN, [this, pid](uint32_t) { Ended(pid); });
    loop_.Watch(agent.standard_error.get(), EPOLLIN, [this, pid](uint32_t) { ReadError(agents_.at(pid)); });
    Note(absl::StrCat("host ", start.host, ": agent started as process ", pid, "; the driver listens on ",
                      start.local_address));
    const std::string message =
        BootstrapMessage(start, {{}, options_.data_address(start.host), options_.grace, absl::InfiniteDuration()});
    // One that is dead already is told by its end, which has more to say than "broken pipe".
    WriteAll(agent.standard_input.get(), message).IgnoreError();
    events.reached(HostStep::kCallBack, "");
    return absl::OkStatus();
  }

  void ReadError(Agent& agent) {
    char buffer[4096];
    ssize_t size = 0;
    while ((size = ::read(agent.standard_error.get(), buffer, sizeof buffer)) > 0) {
      TakeError(agent, {buffer, static_cast<size_t>(size)});
    }
    if (size == 0) loop_.Unwatch(agent.standard_error.get());
  }

  void TakeError(Agent& agent, absl::string_view data) {
    agent.last_words.Append(data);
    agent.unfinished_line.append(data.data(), data.size());
    size_t begin = 0;
    for (size_t end; (end = agent.unfinished_line.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (options_.on_line) {
        options_.on_line(agent.host, absl::string_view(agent.unfinished_line).substr(begin, end - begin));
      }
    }
    agent.unfinished_line.erase(0, begin);
    if (agent.unfinished_line.size() > kLongestLine) agent.unfinished_line.clear();
  }

  void Ended(pid_t pid) {
    Agent& agent = agents_.at(pid);
    const absl::StatusOr<ExitStatus> status = CollectProcess(agent.process);
    if (absl::IsFailedPrecondition(status.status())) return;
    ReadError(agent);
    loop_.Unwatch(agent.process.get());
    loop_.Unwatch(agent.standard_error.get());
    const std::string how = status.ok() ? Describe(*status) : std::string(status.status().message());
    const std::vector<std::string> last_words = agent.last_words.Lines();
    const std::string words = last_words.empty() ? "" : absl::StrCat("; it said: ", absl::StrJoin(last_words, " | "));
    Note(absl::StrCat("host ", agent.host, ": agent ", how));
    const std::function<void(absl::Status)> failed = std::move(agent.events.failed);
    agents_.erase(pid);
    failed(absl::UnavailableError(absl::StrCat("the agent ", how, words)));
    KillOrphans();
    CheckFinished();
  }

  // When a parent ends, its children are ours before its end is told; so each end that is told leads here, and what is
  // left after the last one is nothing.
  void KillOrphans() {
    for (const pid_t pid : ChildrenOfThisProcess()) {
      if (agents_.count(pid) > 0 || orphans_.count(pid) > 0 || not_ours_.count(pid) > 0 || OwnChildren::Has(pid)) {
        continue;
      }
      absl::StatusOr<UniqueFd> process = OpenProcess(pid);
      if (!process.ok()) continue;
      SignalProcess(*process, SIGKILL);
      Note(absl::StrCat("process ", pid, ", left behind by an agent, was killed"));
      loop_.Watch(process->get(), EPOLLIN, [this, pid](uint32_t) { OrphanEnded(pid); });
      orphans_.emplace(pid, *std::move(process));
    }
  }

  void OrphanEnded(pid_t pid) {
    const UniqueFd& process = orphans_.at(pid);
    if (absl::IsFailedPrecondition(CollectProcess(process).status())) return;
    loop_.Unwatch(process.get());
    orphans_.erase(pid);
    KillOrphans();
    CheckFinished();
  }

  void BeginFinish() {
    finishing_ = true;
    CheckFinished();
    loop_.At(Now() + options_.patience, [this] {
      for (const auto& [pid, agent] : agents_) SignalProcess(agent.process, SIGKILL);
    });
    loop_.At(Now() + options_.patience + kLastPatience, [this] { SetFinished(); });
  }

  void CheckFinished() {
    if (finishing_ && agents_.empty() && orphans_.empty()) SetFinished();
  }

  void SetFinished() {
    MutexLock lock(&mutex_);
    finished_ = true;
    finished_changed_.NotifyAll();
  }

  void Note(const std::string& text) {
    if (options_.on_note) options_.on_note(text);
  }

  static constexpr size_t kLongestLine = 64 << 10;

  const LocalStarterOptions options_;
  std::set<pid_t> not_ours_;  // children from before

  // The loop's.
  EventLoop loop_;
  std::map<pid_t, Agent> agents_;
  std::map<pid_t, UniqueFd> orphans_;
  bool finishing_ = false;

  Mutex mutex_;
  CondVar finished_changed_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::string> FindAgentProgram(const std::string& from_environment) {
  std::string path = from_environment;
  if (path.empty()) {
    char self[4096];
    const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self);
    if (size < 0) return ErrnoStatus(errno, "find this program's own file by /proc/self/exe");
    const absl::string_view own(self, static_cast<size_t>(size));
    path = absl::StrCat(own.substr(0, own.rfind('/') + 1), "farandole-agent");
  }
  if (::access(path.c_str(), X_OK) != 0) {
    const absl::Status status = ErrnoStatus(errno, absl::StrCat("the agent's program ", path));
    return absl::Status(status.code(), absl::StrCat(status.message(),
                                                    "; it belongs beside this program "
                                                    "(",
                                                    env::kAgentProgram, " can name another place)"));
  }
  return path;
}

absl::StatusOr<std::unique_ptr<LocalStarter>> LocalStarter::Create(LocalStarterOptions options) {
  RETURN_IF_ERROR(BecomeSubreaper());
  return std::make_unique<LocalStarterImpl>(std::move(options));
}

}  // namespace farandole
