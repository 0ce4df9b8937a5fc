#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/core/ids.h"
#include "launcher/ssh/cancellation.h"
#include "launcher/ssh/remote_shell.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

struct ChildOptions {
  std::vector<std::string> arguments;    // the first is the program, found in PATH if it has no '/'
  std::vector<std::string> environment;  // NAME=VALUE, all of it
  // Standard input and output in one stream, for a program that stands in for a connection.
  bool one_stream = false;
};

// A program on this machine that works for us: in a session of its own, so that it has no terminal to ask on and no
// Ctrl-C reaches it; it ends with the thread that started it (PR_SET_PDEATHSIG), and, with what it has started in its
// process group, when this is destroyed. Destroying waits for it.
class ChildProcess {
 public:
  // Errors: NotFound, PermissionDenied, ... the program cannot be executed; of the system.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Our ends, non-blocking. With `one_stream` input() is both, and output() is none.
  UniqueFd& input() { return input_; }
  UniqueFd& output() { return output_; }
  UniqueFd& error() { return error_; }
  // Readable when it has ended.
  int ended_fd() const { return process_.get(); }

  // How it ended. Errors: DeadlineExceeded; Cancelled.
  absl::StatusOr<ExitStatus> AwaitEnd(Instant deadline, const Cancellation& cancellation);

 private:
  ChildProcess() = default;
  void Collect();

  pid_t pid_ = 0;
  UniqueFd process_, input_, output_, error_;
  bool collected_ = false;
  ExitStatus status_;
};

// The environment of this process without the variables named, and with `added`.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& removed,
                                         const std::vector<std::string>& added);

// A child as the remote process whose streams it carries.
std::unique_ptr<RemoteProcess> MakeChildRemoteProcess(std::unique_ptr<ChildProcess> child,
                                                      const Cancellation& cancellation);

}  // namespace farandole
