#include "worker/agent/testing/agent_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "tools/base/check.h"

namespace farandole::testing {

bool Ends(pid_t pid) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return errno == ESRCH;
  pollfd waiting{pidfd.get(), POLLIN, 0};
  return ::poll(&waiting, 1, 30'000) == 1;
}

AgentProcess::AgentProcess(const std::string& bootstrap, const char* option) {
  const char* program = std::getenv("FARANDOLE_AGENT_PROGRAM");
  CHECK(program != nullptr);
  int input[2];
  CHECK(::pipe2(input, O_CLOEXEC) == 0);
  input_.reset(input[1]);
  const UniqueFd read_end(input[0]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, read_end.get(), STDIN_FILENO);
  error_.reset(::memfd_create("agent's stderr", MFD_CLOEXEC));
  ::posix_spawn_file_actions_adddup2(&actions, error_.get(), STDERR_FILENO);
  char name[] = "farandole-agent";
  char* const argv[] = {name, const_cast<char*>(option), nullptr};
  const int error = ::posix_spawn(&pid_, program, &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  CHECK(error == 0) << program << " " << error;
  const auto size = static_cast<uint32_t>(bootstrap.size());
  std::string framed;
  for (const int shift : {24, 16, 8, 0}) framed += static_cast<char>(size >> shift & 0xff);
  framed += bootstrap;
  CHECK(::write(input_.get(), framed.data(), framed.size()) == static_cast<ssize_t>(framed.size()));
}

AgentProcess::~AgentProcess() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string AgentProcess::Said() const {
  std::string text(64 << 10, '\0');
  const ssize_t size = ::pread(error_.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

void AgentProcess::Signal(int signal) { ::kill(pid_, signal); }

int AgentProcess::Wait() {
  if (!Ends(pid_)) return -1000;
  int status;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace farandole::testing
