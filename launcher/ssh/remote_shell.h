#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "driver/core/host_step.h"
#include "launcher/ssh/cancellation.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Commands on another host. Three implementations pass one suite (remote_shell_test.cc): libssh_connector.h,
// openssh_connector.h, and testing/fake_connector.h, which runs them here.
//
// Errors of all methods say by their code whether trying again can help:
//   Unavailable, DeadlineExceeded   it can: an unknown name (it may come), refused, unreachable, reset, too slow
//   Cancelled                       the cancellation that the connection was made with
//   anything else                   it cannot: PermissionDenied: no way to authenticate; FailedPrecondition: the host's
//                                   key, or nothing in common; InvalidArgument: the target or the user's configuration
// and their message has user, host, port, what was tried, the other side's words and what to do about them.
//
// Nothing here ever asks a person: no password, no passphrase, no "yes", and no terminal to ask on.
//
// Threads: an object and everything made from it belong to one thread, which must live as long as they do: children
// that it starts end with it. Another thread can only cancel.

bool IsRetryable(const absl::Status& status);

struct RemoteTarget {
  std::string host;  // as a user writes it: a name, an alias of the user's ssh configuration, a numeric address
  std::string user;  // empty: as configured
  int port = 0;      // 0: as configured
  std::string identity_file;  // empty: as configured; otherwise it is tried first
  // Takes the key of a host that is not known yet and adds it to the known ones. Never a changed key.
  bool accept_new_host_keys = false;
  // How to connect to a numeric address of the host; empty: by TCP from here. Its errors are Connect's, and its streams
  // are taken over. Not asked where the user's configuration has a proxy. OpenSSH cannot do without its own connection:
  // Unimplemented.
  std::function<absl::StatusOr<UniqueFd>(const std::string& address, int port, Instant deadline)> connect;
};

// What came from a process, or how it ended.
struct RemoteOutput {
  enum class Kind { kStdout, kStderr, kEnd };
  Kind kind = Kind::kEnd;
  std::string bytes;   // never empty unless kEnd
  int exit_code = 0;   // kEnd without a signal
  std::string signal;  // kEnd: "KILL", "TERM", ...; "unknown" when the other side has lost the process or the name
};

// One process on the other host. Destroying it closes its three streams, and leaves the process to notice.
class RemoteProcess {
 public:
  virtual ~RemoteProcess() = default;

  // Writes all of it. What the process writes meanwhile is kept within the bounds of the connection; if it fills them
  // before it reads on, this ends with DeadlineExceeded. Errors also: FailedPrecondition: the process reads no more.
  virtual absl::Status Write(absl::string_view bytes, Instant deadline) = 0;

  // Ends its standard input. Does not block.
  virtual void CloseInput() = 0;

  // The next bytes of either stream; kEnd after the last of both. Not called again after kEnd.
  virtual absl::StatusOr<RemoteOutput> Read(Instant deadline) = 0;
};

// A connection to a host, authenticated. Destroying it closes it, and with it all processes' streams; they are
// destroyed before it.
class RemoteShell {
 public:
  virtual ~RemoteShell() = default;

  // Starts `command`, which the user's login shell on that host interprets. Several at a time.
  virtual absl::StatusOr<std::unique_ptr<RemoteProcess>> Exec(const std::string& command, Instant deadline) = 0;
};

class RemoteConnector {
 public:
  virtual ~RemoteConnector() = default;

  // Connects and authenticates. `on_step` is called when kResolve, kConnect and kAuthenticate begin, on this thread.
  // The cancellation is that of everything made from the result, and outlives it. May be called from several threads.
  virtual absl::StatusOr<std::unique_ptr<RemoteShell>> Connect(const RemoteTarget& target, Instant deadline,
                                                               const Cancellation& cancellation,
                                                               const std::function<void(HostStep)>& on_step) = 0;
};

// The files that are read in place of the user's own; empty: the user's.
struct SshFiles {
  std::string config;
  std::string known_hosts;
};

}  // namespace farandole
