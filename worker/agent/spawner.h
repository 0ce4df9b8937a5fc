#pragma once

#include <sys/types.h>

#include <string>
#include <variant>
#include <vector>

#include "absl/types/optional.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// What reaches execve(2), byte for byte: no shell.
struct Program {
  std::vector<std::string>
      arguments;  // argv[0] is searched in PATH of `environment` when it has no slash; at least one
  std::vector<std::string> environment;  // NAME=VALUE
  std::string working_directory;         // absolute; relative entries of PATH count from it
  UniqueFd input = UniqueFd();           // its standard input; none: /dev/null
  bool wants_result = false;             // it gets kResultFd
};

// The descriptor that a program writes its result to.
inline constexpr int kResultFd = 3;

// Why a program could not be executed. There is no process.
struct SpawnError {
  int error = 0;     // errno
  std::string what;  // what was tried: a folder, a path, a name and where it was looked for
};

// A process that this one has started.
struct Process {
  pid_t pid = 0;
  UniqueFd pidfd;                     // readable when it has ended
  UniqueFd stdout_pipe, stderr_pipe;  // read ends, non-blocking
  UniqueFd result_pipe;               // the same, if it was wanted
  UniqueFd outcome;                   // readable when execve has succeeded or failed: then AwaitExec tells which
};

// Starts `program`
//   - in a session of its own, so also a process group of its own, whose number is its process id. A group alone would
//   leave it
//     in the session of the launcher's terminal, where a background group that reads the terminal (a password prompt)
//     is stopped without a word; with no terminal it gets an error. The original's jobs run in sessions of their own,
//     too;
//   - to be killed by the kernel when the thread that calls this ends, even by SIGKILL: call it from the main thread;
//   - with the program's standard input or /dev/null, output and error in pipes, the result's pipe if it is wanted, no
//   other descriptor, no signal blocked and none ignored.
//
// Does not wait for execve, which costs a millisecond and on a lost file server may take for ever: programs that are
// started one after the other get there side by side. For the same reason this is fork(2) and not the cheaper vfork(2),
// which waits; 32 starts of /bin/true came to 27 ms with it, 56 ms with vfork and 67 ms with posix_spawn.
std::variant<Process, SpawnError> Spawn(const Program& program);

// Waits for the outcome of execve. Nothing: the program runs, or has run. Otherwise there is no process any more.
absl::optional<SpawnError> AwaitExec(const Program& program, Process* process);

}  // namespace farandole
