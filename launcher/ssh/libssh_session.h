#pragma once

#include <libssh/libssh.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/ssh/cancellation.h"
#include "launcher/ssh/child_process.h"
#include "launcher/ssh/remote_shell.h"
#include "launcher/ssh/ssh_errors.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// libssh's session in non-blocking mode over a stream of ours, with the waiting done here: libssh would look names up,
// connect, and wait, in ways that nothing can interrupt. Not thread-safe.
class LibsshSession {
 public:
  // With the user's configuration read, and `target` over it. Errors: InvalidArgument, FailedPrecondition: no memory.
  static absl::StatusOr<std::unique_ptr<LibsshSession>> Create(const RemoteTarget& target, const SshFiles& files,
                                                               const Cancellation& cancellation);
  ~LibsshSession();

  // The steps, in order. Errors as in remote_shell.h.
  absl::Status OpenStream(Instant deadline, const std::function<void(HostStep)>& on_step);
  absl::Status ExchangeKeys(Instant deadline);
  absl::Status CheckHostKey();
  absl::Status Authenticate(Instant deadline);

  // Calls `step` until it is done, and waits in between for the other side. `step` returns whether it is done, or
  // fails.
  absl::Status Drive(Instant deadline, const std::function<absl::StatusOr<bool>()>& step);

  // Takes in what has come, without waiting. libssh's reading functions do that only until a stream has ended.
  void Pump();

  ssh_session get() const { return session_; }
  const SshEndpoint& where() const { return where_; }
  const Cancellation& cancellation() const { return cancellation_; }
  // libssh's last words, in a line.
  std::string error() const;
  // Unavailable, that the connection was lost while `what`.
  absl::Status Lost(absl::string_view what) const;

 private:
  LibsshSession(const RemoteTarget& target, const SshFiles& files, const Cancellation& cancellation);
  absl::Status Configure();
  absl::StatusOr<bool> PrepareToPump();
  absl::Status OpenProxy(const std::string& command);
  absl::StatusOr<UniqueFd> ConnectAsTold(Instant deadline, const std::function<void(HostStep)>& on_step);
  std::string Fingerprint() const;
  std::string KnownHostsFile() const;

  const RemoteTarget target_;
  const SshFiles files_;
  const Cancellation& cancellation_;
  ssh_session session_;
  ssh_event event_ = nullptr;  // once the keys are exchanged
  SshEndpoint where_;
  UniqueFd stream_;  // libssh has a copy
  std::unique_ptr<ChildProcess> proxy_;
};

// The ways in that libssh_session's Authenticate goes; in libssh_auth.cc.
absl::Status AuthenticateLibssh(LibsshSession& session, const std::string& identity_file, Instant deadline);

}  // namespace farandole
