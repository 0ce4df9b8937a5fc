#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/ssh/remote_shell.h"

namespace farandole::testing {

struct SshServerOptions {
  std::vector<std::string> environment;   // NAME=VALUE that processes get
  std::vector<std::string> extra_config;  // lines of sshd_config
};

// A real sshd as the user who runs the test, on a free port of 127.0.0.1, with keys of its own in a temporary folder,
// and the files of a client that knows its host key and has a key that it takes. The user's own files are not touched.
// Ends with the test.
class SshServer {
 public:
  // Why there can be none here ("openssh-server is not installed"); empty if there can.
  static std::string Missing();

  static absl::StatusOr<std::unique_ptr<SshServer>> Start(const SshServerOptions& options);
  virtual ~SshServer() = default;

  virtual int port() const = 0;
  virtual const std::string& folder() const = 0;
  // A client's configuration without anything in it, and its known_hosts, with this server in it.
  virtual SshFiles files() const = 0;
  // 127.0.0.1 with the right port, this user, and the key that is taken.
  virtual RemoteTarget target() const = 0;
  // Makes a key (ssh-keygen) in folder(), that the server does not take. Its path.
  virtual std::string MakeKey(const std::string& name, const std::string& passphrase) = 0;
};

std::string ReadWhole(const std::string& path);
void WriteWhole(const std::string& path, const std::string& text);

}  // namespace farandole::testing
