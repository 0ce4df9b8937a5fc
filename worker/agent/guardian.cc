#include "worker/agent/guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/time/time.h"
#include "tools/base/clock.h"
#include "worker/agent/children.h"

namespace farandole {
namespace {

// A process that even SIGKILL does not end (a hung disk) is given up then.
constexpr absl::Duration kKillTimeout = absl::Seconds(5);
constexpr absl::Duration kRound = absl::Milliseconds(20);

// Reaps whatever has ended; true, with its status, if the agent is among it.
bool ReapAll(pid_t agent, int* status) {
  bool found = false;
  int ended;
  for (pid_t pid; (pid = ::waitpid(-1, &ended, WNOHANG)) > 0;) {
    if (pid != agent) continue;
    found = true;
    *status = ended;
  }
  return found;
}

void AwaitSignal(const sigset_t& set, absl::Duration at_most) {
  const timespec limit = absl::ToTimespec(at_most);
  ::sigtimedwait(&set, nullptr, &limit);
}

// Killing one brings its children here, so this goes on until there is none.
int KillRest(const sigset_t& child) {
  const Instant deadline = Now() + kKillTimeout;
  int killed = 0;
  while (Now() < deadline) {
    int ignored;
    ReapAll(0, &ignored);
    const std::vector<pid_t> rest = ChildrenOfThisProcess();
    if (rest.empty()) break;
    for (const pid_t pid : rest) killed += ::kill(pid, SIGKILL) == 0 ? 1 : 0;
    AwaitSignal(child, kRound);
  }
  return killed;
}

[[noreturn]] void Guard(pid_t agent, const sigset_t& set) {
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  int status = 0;
  while (!ReapAll(agent, &status)) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&set, &info);
    if (signal == SIGTERM) ::kill(agent, SIGTERM);
    if (signal == SIGUSR1) ::kill(agent, SIGKILL);
  }
  const int killed = KillRest(set);
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr,
                 "farandole-agent: the agent was ended by signal %d (%s); %d processes that it left were killed\n",
                 WTERMSIG(status), ::sigabbrev_np(WTERMSIG(status)), killed);
  }
  std::_Exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace

void StandGuard() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  sigset_t set, before;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGUSR1, SIGCHLD}) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  const pid_t guardian = ::getpid();
  const pid_t agent = ::fork();
  if (agent < 0) {
    std::fprintf(stderr, "farandole-agent: starting a process: %s\n", std::strerror(errno));
    std::_Exit(1);
  }
  if (agent > 0) Guard(agent, set);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != guardian) std::_Exit(1);  // it is gone already
  // SIGTERM stays blocked: the agent takes it by a descriptor, and it may be there before that.
  ::sigaddset(&before, SIGTERM);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace farandole
