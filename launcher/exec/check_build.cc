#include "launcher/exec/check_build.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/exec/processes.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/instant.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

// A framework counts if it and our adapter of it are there. Looking for a module does not import it, only its package.
constexpr char kQuestion[] = R"(
import importlib.util
def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False
for framework, adapter in (("tensorflow", "horovod.tensorflow"), ("torch", "horovod.torch"), ("mxnet", "horovod.mxnet")):
    if there(framework) and there(adapter):
        print("found", framework)
)";

absl::StatusOr<pid_t> StartPython(int standard_output) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, standard_output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char* const argv[] = {const_cast<char*>("python3"), const_cast<char*>("-c"), const_cast<char*>(kQuestion), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &files, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return ErrnoStatus(error, "execute python3");
  return pid;
}

// False when `deadline` has passed.
bool WaitUntilReadable(int fd, Instant deadline) {
  pollfd ready{fd, POLLIN, 0};
  int count = 0;
  do {
    count = ::poll(&ready, 1, PollTimeoutMs(deadline));
  } while (count < 0 && errno == EINTR);
  return count > 0;
}

// All that comes until the end; false when `deadline` has passed.
bool ReadUntilEnd(int fd, Instant deadline, std::string* text) {
  while (WaitUntilReadable(fd, deadline)) {
    char buffer[4096];
    const ssize_t size = ::read(fd, buffer, sizeof buffer);
    if (size <= 0) return true;
    text->append(buffer, static_cast<size_t>(size));
  }
  return false;
}

PythonFindings Parse(const std::string& answer) {
  PythonFindings found;
  for (absl::string_view line : absl::StrSplit(answer, '\n')) {
    if (line == "found tensorflow") found.tensorflow = true;
    if (line == "found torch") found.torch = true;
    if (line == "found mxnet") found.mxnet = true;
  }
  return found;
}

std::string Row(bool there, absl::string_view name) {
  return absl::StrCat("    [", there ? "X" : " ", "] ", name, "\n");
}

}  // namespace

absl::StatusOr<PythonFindings> AskPython(absl::Duration patience) {
  const Instant deadline = Now() + patience;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  const UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  ASSIGN_OR_RETURN(const pid_t pid, StartPython(write.get()));
  ASSIGN_OR_RETURN(const UniqueFd process, OpenProcess(pid));
  write.reset();
  std::string answer;
  const bool ended = ReadUntilEnd(read.get(), deadline, &answer) && WaitUntilReadable(process.get(), deadline);
  if (!ended) {
    SignalProcess(process, SIGKILL);
    WaitUntilReadable(process.get(), Instant::Infinite());
  }
  ASSIGN_OR_RETURN(const ExitStatus status, CollectProcess(process));
  if (!ended) {
    return absl::DeadlineExceededError(absl::StrCat("python3 did not answer within ", absl::FormatDuration(patience)));
  }
  if (!status.success()) return absl::UnknownError("python3 could not be asked: it failed");
  return Parse(answer);
}

std::string CheckBuildText(const std::string& version, const absl::StatusOr<PythonFindings>& python, bool verbose) {
  const PythonFindings found = python.ok() ? *python : PythonFindings();
  std::string text = verbose ? "\n" : "";
  if (verbose && !python.ok()) absl::StrAppend(&text, "No framework was found: ", python.status().message(), "\n\n");
  absl::StrAppend(&text, "Horovod v", version, ":\n\n");
  absl::StrAppend(&text, "Available Frameworks:\n", Row(found.tensorflow, "TensorFlow"), Row(found.torch, "PyTorch"),
                  Row(found.mxnet, "MXNet"), "\n");
  absl::StrAppend(&text, "Available Controllers:\n", Row(false, "MPI"), Row(true, "Gloo"), "\n");
  absl::StrAppend(&text, "Available Tensor Operations:\n", Row(false, "NCCL"), Row(false, "DDL"), Row(false, "CCL"),
                  Row(false, "MPI"), Row(true, "Gloo"), "\n");
  absl::StrAppend(&text, "Farandole's own transports, which answer to the name Gloo:\n", Row(true, "shared memory"),
                  Row(true, "TCP"));
  return text;
}

}  // namespace farandole
