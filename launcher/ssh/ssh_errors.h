#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace farandole {

// The words of what goes wrong with ssh, the same whichever program speaks it. Pure.

// Where a connection goes, after the user's configuration has been asked.
struct SshEndpoint {
  std::string user, host;
  int port = 22;
  std::string text() const;  // "train@gpu7 port 22"
};

// FailedPrecondition, all three. `fingerprint` as "ED25519 SHA256:..."; empty if it is not told.
absl::Status UnknownHostKey(const SshEndpoint& where, absl::string_view fingerprint, absl::string_view known_hosts);
absl::Status ChangedHostKey(const SshEndpoint& where, absl::string_view fingerprint, absl::string_view known_hosts);
// The host is known by a key of another type than the one that it showed.
absl::Status OtherHostKeyType(const SshEndpoint& where, absl::string_view fingerprint, absl::string_view known_hosts);

struct AuthenticationFailure {
  std::string methods;                     // what the server takes: "publickey,password"; empty: it did not say
  std::vector<std::string> keys_tried;     // files, "the ssh agent's keys"
  std::vector<std::string> keys_locked;    // files that need a passphrase
  std::vector<std::string> keys_unusable;  // "FILE: reason"
  std::string reason;                      // the server's own words, if any
};
// PermissionDenied.
absl::Status AuthenticationRefused(const SshEndpoint& where, const AuthenticationFailure& failure);

// Whether the text of a private key's file needs a passphrase. Reads the first 4 KiB at most.
bool NeedsPassphrase(absl::string_view key_file_text);

// The last thing that the client of OpenSSH said, from its standard error at log level DEBUG1, as one of the errors
// above or another with the code that fits (remote_shell.h).
absl::Status FromOpensshLog(SshEndpoint where, absl::string_view log, const std::vector<std::string>& locked_keys);

// The files of keys that it tried or would have, in order, without repetition.
std::vector<std::string> KeysInOpensshLog(absl::string_view log);

// Text of another machine in a line for a person: one line, without control characters, at most 400 bytes.
std::string Quoted(absl::string_view foreign);

}  // namespace farandole
