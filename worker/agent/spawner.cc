#include "worker/agent/spawner.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace farandole {
namespace {

// What execvp uses where there is no PATH.
constexpr absl::string_view kDefaultPath = "/bin:/usr/bin";

// What the child was doing when it failed.
enum class Step : int32_t { kSetUp, kChdir, kExec };
struct Failure {
  Step step;
  int32_t error;
};

// All that the child needs, made before it exists: it may not allocate.
struct Plan {
  std::vector<std::string> paths;  // to try in this order
  bool searched;                   // they come from PATH
  std::vector<char*> argv, envp, path_pointers;
  const char* working_directory;
  pid_t parent;
  int in, out, err, failure;  // descriptors
  int result;                 // -1: none
};

absl::string_view PathOf(const Program& program) {
  for (const absl::string_view variable : program.environment) {
    if (absl::StartsWith(variable, "PATH=")) return variable.substr(5);
  }
  return kDefaultPath;
}

bool IsSearched(const std::string& name) { return name.find('/') == std::string::npos; }

std::vector<std::string> PathsToTry(const Program& program) {
  const std::string& name = program.arguments[0];
  if (!IsSearched(name)) return {name};
  std::vector<std::string> paths;
  for (const absl::string_view folder : absl::StrSplit(PathOf(program), ':')) {
    paths.push_back(absl::StrCat(folder.empty() ? "." : folder, "/", name));
  }
  return paths;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void Fail(const Plan& plan, Step step, int error) {
  const Failure failure{step, error};
  [[maybe_unused]] const ssize_t n = ::write(plan.failure, &failure, sizeof failure);
  ::_exit(127);
}

void ResetSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal)
    ::sigaction(signal, &action, nullptr);  // fails for KILL, STOP and glibc's own
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Like execvp: what is missing or forbidden in one folder of PATH may be in the next one; "forbidden" tells more than
// "missing".
int TryPaths(const Plan& plan) {
  int error = ENOENT;
  for (char* const* path = plan.path_pointers.data(); *path != nullptr; ++path) {
    ::execve(*path, plan.argv.data(), plan.envp.data());
    const bool may_be_elsewhere = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
    if (!plan.searched || !may_be_elsewhere) return errno;
    if (errno == EACCES) error = EACCES;
  }
  return error;
}

// In the child: system calls only. Another thread of the parent may have held any lock when it forked.
[[noreturn]] void RunChild(const Plan& plan) {
  if (::setsid() < 0) Fail(plan, Step::kSetUp, errno);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) Fail(plan, Step::kSetUp, errno);
  if (::getppid() != plan.parent) ::_exit(127);  // it ended before the line above, so nobody is told
  if (::dup2(plan.in, 0) < 0 || ::dup2(plan.out, 1) < 0 || ::dup2(plan.err, 2) < 0) Fail(plan, Step::kSetUp, errno);
  // Only now: the three may have stood there.
  if (plan.result >= 0 && ::dup2(plan.result, kResultFd) < 0) Fail(plan, Step::kSetUp, errno);
  if (::chdir(plan.working_directory) != 0) Fail(plan, Step::kChdir, errno);
  // Ours are close-on-exec; those of others in this process, or that it was started with, may not be.
  ::close_range(plan.result >= 0 ? kResultFd + 1 : kResultFd, ~0u, CLOSE_RANGE_CLOEXEC);
  ResetSignals();
  Fail(plan, Step::kExec, TryPaths(plan));
}

struct Pipe {
  UniqueFd read, write;
};

bool MakePipe(Pipe* pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe->read.reset(ends[0]);
  pipe->write.reset(ends[1]);
  // dup2 onto itself would leave close-on-exec set; that needs one of 0, 1, 2 to be closed here, which main() rules
  // out.
  return true;
}

// Moves a descriptor that the child uses after it has put its result in place, out of the way of that.
bool MoveAboveResult(UniqueFd* fd) {
  if (fd->get() > kResultFd) return true;
  fd->reset(::fcntl(fd->get(), F_DUPFD_CLOEXEC, kResultFd + 1));
  return static_cast<bool>(*fd);
}

bool MakeResultPipe(Pipe* result, Pipe* failure) {
  return MakePipe(result) && MoveAboveResult(&result->write) && MoveAboveResult(&failure->write);
}

// What `step` was about, for a person.
std::string Tried(const Program& program, const Failure& failure) {
  const std::string& name = program.arguments[0];
  if (failure.step == Step::kSetUp) return "starting a process";
  if (failure.step == Step::kChdir) return absl::StrCat("working folder ", program.working_directory);
  if (IsSearched(name)) return absl::StrCat(name, " (searched in PATH: ", PathOf(program), ")");
  const std::string path = name[0] == '/' ? name : absl::StrCat(program.working_directory, "/", name);
  const bool script = failure.error == ENOENT && ::access(path.c_str(), F_OK) == 0;
  return script ? absl::StrCat(name, " (it is there, but not the interpreter that its first line names)") : name;
}

}  // namespace

std::variant<Process, SpawnError> Spawn(const Program& program) {
  Plan plan;
  plan.paths = PathsToTry(program);
  plan.searched = IsSearched(program.arguments[0]);
  plan.path_pointers = Pointers(plan.paths);
  plan.argv = Pointers(program.arguments);
  plan.envp = Pointers(program.environment);
  plan.working_directory = program.working_directory.c_str();
  plan.parent = ::getpid();

  UniqueFd null;
  if (!program.input) null.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  plan.in = program.input ? program.input.get() : null.get();
  Pipe out, err, result, failure;
  if (plan.in < 0 || !MakePipe(&out) || !MakePipe(&err) || !MakePipe(&failure)) return SpawnError{errno, "pipes"};
  if (program.wants_result && !MakeResultPipe(&result, &failure)) return SpawnError{errno, "pipes"};
  plan.result = program.wants_result ? result.write.get() : -1;
  plan.out = out.write.get();
  plan.err = err.write.get();
  plan.failure = failure.write.get();

  // All signals are blocked until the child has no handlers of ours any more.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::_Fork();  // without the handlers of pthread_atfork: gRPC can have some
  if (pid == 0) RunChild(plan);
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return SpawnError{fork_error, "starting a process"};

  Process process;
  process.pid = pid;
  process.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.pidfd) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return SpawnError{error, "watching a process"};
  }
  process.stdout_pipe = std::move(out.read);
  process.stderr_pipe = std::move(err.read);
  process.result_pipe = std::move(result.read);
  process.outcome = std::move(failure.read);
  for (const UniqueFd* fd : {&process.stdout_pipe, &process.stderr_pipe, &process.result_pipe}) {
    if (*fd) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  return process;
}

absl::optional<SpawnError> AwaitExec(const Program& program, Process* process) {
  Failure failure;
  ssize_t n;
  do {
    n = ::read(process->outcome.get(), &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  process->outcome.reset();
  if (n == 0) return absl::nullopt;
  ::waitpid(process->pid, nullptr, 0);
  return SpawnError{failure.error, Tried(program, failure)};
}

}  // namespace farandole
