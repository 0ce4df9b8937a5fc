#include "launcher/exec/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/errno_status.h"

namespace farandole {
namespace {

constexpr auto kPidfd = static_cast<idtype_t>(3);  // P_PIDFD, which older headers lack

// Field 4 of /proc/PID/stat; 0 if the process has gone.
pid_t ParentOf(absl::string_view pid) {
  const UniqueFd file(::open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return 0;
  char buffer[512];
  const ssize_t size = ::read(file.get(), buffer, sizeof buffer);
  if (size <= 0) return 0;
  // "PID (NAME) STATE PARENT ..."; the name may have anything in it, also ')'.
  const absl::string_view text(buffer, static_cast<size_t>(size));
  const std::vector<absl::string_view> fields = absl::StrSplit(text.substr(text.rfind(')') + 1), ' ');
  int parent = 0;
  return fields.size() > 2 && absl::SimpleAtoi(fields[2], &parent) ? parent : 0;
}

}  // namespace

std::vector<pid_t> ChildrenOfThisProcess() {
  std::vector<pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
  if (proc == nullptr) return children;
  while (const dirent* entry = ::readdir(proc.get())) {
    int pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid) && ParentOf(entry->d_name) == ::getpid()) children.push_back(pid);
  }
  return children;
}

absl::StatusOr<UniqueFd> OpenProcess(pid_t pid) {
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return absl::UnavailableError(ErrnoStatus(errno, absl::StrCat("pidfd_open ", pid)).message());
  return process;
}

void SignalProcess(const UniqueFd& process, int signal) {
  ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

absl::StatusOr<ExitStatus> CollectProcess(const UniqueFd& process) {
  siginfo_t info{};
  if (::waitid(kPidfd, static_cast<id_t>(process.get()), &info, WEXITED | WNOHANG) != 0) {
    return ErrnoStatus(errno, "waitid");
  }
  if (info.si_pid == 0) return absl::FailedPreconditionError("the process has not ended");
  ExitStatus status;
  (info.si_code == CLD_EXITED ? status.code : status.signal) = info.si_status;
  return status;
}

absl::Status BecomeSubreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return ErrnoStatus(errno, "prctl(PR_SET_CHILD_SUBREAPER)");
  return absl::OkStatus();
}

}  // namespace farandole
