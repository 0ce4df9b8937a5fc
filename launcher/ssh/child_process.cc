#include "launcher/ssh/child_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/exec/own_children.h"
#include "launcher/exec/processes.h"
#include "launcher/ssh/await.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

struct Pipe {
  UniqueFd ours, theirs;
};

absl::StatusOr<Pipe> MakePipe(bool ours_reads) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  Pipe pipe{UniqueFd(ends[ours_reads ? 0 : 1]), UniqueFd(ends[ours_reads ? 1 : 0])};
  ::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

absl::StatusOr<Pipe> MakeStream() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoStatus(errno, "socketpair");
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Where `program` is, so that nothing has to be searched between fork and exec.
std::string FindInPath(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string candidate = absl::StrCat(folders.substr(begin, end - begin), "/", program);
    if (end > begin && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return program;
}

struct Streams {
  int input, output, error, failure;
};

// Between fork and exec: only what is safe there. The reason of a failure goes to `failure`, which exec closes.
[[noreturn]] void Become(const char* program, char* const* arguments, char* const* environment, const Streams& streams,
                         pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(streams.input, STDIN_FILENO);
  ::dup2(streams.output, STDOUT_FILENO);
  ::dup2(streams.error, STDERR_FILENO);
  struct sigaction defaults {};
  defaults.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &defaults, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execve(program, arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(streams.failure, &error, sizeof error);
  ::_exit(127);
}

class ChildRemoteProcess : public RemoteProcess {
 public:
  ChildRemoteProcess(std::unique_ptr<ChildProcess> child, const Cancellation& cancellation)
      : child_(std::move(child)), cancellation_(cancellation) {}

  absl::Status Write(absl::string_view bytes, Instant deadline) override {
    while (!bytes.empty()) {
      if (!child_->input()) return absl::FailedPreconditionError("the input of the process was closed");
      // MSG_NOSIGNAL does not exist for pipes: this program ignores SIGPIPE.
      const ssize_t written = ::write(child_->input().get(), bytes.data(), bytes.size());
      if (written >= 0) {
        bytes.remove_prefix(static_cast<size_t>(written));
      } else if (errno == EAGAIN) {
        RETURN_IF_ERROR(AwaitFd(child_->input().get(), POLLOUT, deadline, cancellation_)) << "writing to the process";
      } else if (errno != EINTR) {
        return absl::FailedPreconditionError(ErrnoStatus(errno, "the process reads no more").message());
      }
    }
    return absl::OkStatus();
  }

  void CloseInput() override { child_->input().reset(); }

  absl::StatusOr<RemoteOutput> Read(Instant deadline) override {
    while (child_->output() || child_->error()) {
      std::vector<pollfd> ready;
      for (const UniqueFd* fd : {&child_->output(), &child_->error()}) {
        if (*fd) ready.push_back({fd->get(), POLLIN, 0});
      }
      RETURN_IF_ERROR(AwaitAny(absl::MakeSpan(ready), deadline, cancellation_)) << "reading from the process";
      for (const pollfd& one : ready) {
        if (one.revents == 0) continue;
        const bool is_output = child_->output() && one.fd == child_->output().get();
        RemoteOutput output = ReadFrom(is_output);
        if (!output.bytes.empty()) return output;
      }
    }
    ASSIGN_OR_RETURN(const ExitStatus status, child_->AwaitEnd(deadline, cancellation_));
    RemoteOutput end;
    end.exit_code = status.code;
    if (status.signal != 0) {
      const char* const name = ::sigabbrev_np(status.signal);
      end.signal = name != nullptr ? name : "unknown";
    }
    return end;
  }

 private:
  RemoteOutput ReadFrom(bool is_output) {
    RemoteOutput output;
    output.kind = is_output ? RemoteOutput::Kind::kStdout : RemoteOutput::Kind::kStderr;
    UniqueFd& fd = is_output ? child_->output() : child_->error();
    output.bytes.resize(64 << 10);
    const ssize_t size = ::read(fd.get(), output.bytes.data(), output.bytes.size());
    output.bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) fd.reset();
    return output;
  }

  const std::unique_ptr<ChildProcess> child_;
  const Cancellation& cancellation_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildOptions& options) {
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  ASSIGN_OR_RETURN(Pipe input, options.one_stream ? MakeStream() : MakePipe(false));
  Pipe output;
  if (!options.one_stream) {
    ASSIGN_OR_RETURN(output, MakePipe(true));
  }
  ASSIGN_OR_RETURN(Pipe error, MakePipe(true));
  ASSIGN_OR_RETURN(Pipe failure, MakePipe(true));
  const std::string program = FindInPath(options.arguments.at(0));
  const std::vector<char*> arguments = Pointers(options.arguments);
  const std::vector<char*> environment = Pointers(options.environment);
  const int their_output = options.one_stream ? input.theirs.get() : output.theirs.get();
  const Streams streams{input.theirs.get(), their_output, error.theirs.get(), failure.theirs.get()};
  const pid_t parent = ::getpid();
  child->pid_ = OwnChildren::Start([&] {
    const pid_t pid = ::fork();
    if (pid == 0) Become(program.c_str(), arguments.data(), environment.data(), streams, parent);
    return pid;
  });
  if (child->pid_ < 0) {
    child->collected_ = true;
    return ErrnoStatus(errno, "fork");
  }
  ASSIGN_OR_RETURN(child->process_, OpenProcess(child->pid_));
  failure.theirs.reset();
  ::fcntl(failure.ours.get(), F_SETFL, 0);
  int reason = 0;
  if (::read(failure.ours.get(), &reason, sizeof reason) == sizeof reason) {
    return ErrnoStatus(reason, absl::StrCat("execute ", program));
  }
  child->input_ = std::move(input.ours);
  child->output_ = std::move(output.ours);
  child->error_ = std::move(error.ours);
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  if (!collected_) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    Collect();
  }
}

void ChildProcess::Collect() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  collected_ = true;
  OwnChildren::Collected(pid_);
  if (WIFSIGNALED(status)) {
    status_.signal = WTERMSIG(status);
  } else {
    status_.code = WEXITSTATUS(status);
  }
}

absl::StatusOr<ExitStatus> ChildProcess::AwaitEnd(Instant deadline, const Cancellation& cancellation) {
  if (!collected_) {
    RETURN_IF_ERROR(AwaitFd(process_.get(), POLLIN, deadline, cancellation)) << "waiting for the process";
    // What it has left in its group goes with it, while its number is still its own.
    ::kill(-pid_, SIGKILL);
    Collect();
  }
  return status_;
}

std::vector<std::string> EnvironmentWith(const std::vector<std::string>& removed,
                                         const std::vector<std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool is_removed = std::any_of(removed.begin(), removed.end(), [&](const std::string& name) {
      return absl::StartsWith(*entry, absl::StrCat(name, "="));
    });
    if (!is_removed) result.emplace_back(*entry);
  }
  result.insert(result.end(), added.begin(), added.end());
  return result;
}

std::unique_ptr<RemoteProcess> MakeChildRemoteProcess(std::unique_ptr<ChildProcess> child,
                                                      const Cancellation& cancellation) {
  return std::make_unique<ChildRemoteProcess>(std::move(child), cancellation);
}

}  // namespace farandole
