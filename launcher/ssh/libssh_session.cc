#include "launcher/ssh/libssh_session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/ssh/await.h"
#include "launcher/ssh/dial.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr absl::Duration kFarewell = absl::Milliseconds(200);

std::string Option(ssh_session session, ssh_options_e option) {
  char* value = nullptr;
  if (ssh_options_get(session, option, &value) != SSH_OK || value == nullptr) return "";
  std::string result(value);
  ssh_string_free_char(value);
  return result;
}

// %h, %p, %r, %n and %% of a ProxyCommand. libssh's own expansion is not open to us.
std::string Expanded(const std::string& command, const SshEndpoint& where, const std::string& as_written) {
  std::string result;
  for (size_t i = 0; i < command.size(); ++i) {
    const char letter = command[i] == '%' && i + 1 < command.size() ? command[++i] : '\0';
    switch (letter) {
      case '\0':
        result += command[i];
        break;
      case 'h':
        result += where.host;
        break;
      case 'p':
        absl::StrAppend(&result, where.port);
        break;
      case 'r':
        result += where.user;
        break;
      case 'n':
        result += as_written;
        break;
      case '%':
        result += '%';
        break;
      default:
        result += '%';
        result += letter;
    }
  }
  return result;
}

bool CannotBeCured(absl::string_view reason) {
  for (const absl::string_view part : {"kex error", "no match for method", "banner", "Protocol", "version mismatch"}) {
    if (absl::StrContains(reason, part)) return true;
  }
  return false;
}

}  // namespace

LibsshSession::LibsshSession(const RemoteTarget& target, const SshFiles& files, const Cancellation& cancellation)
    : target_(target), files_(files), cancellation_(cancellation), session_(ssh_new()) {
  where_.host = target.host;
  where_.user = target.user;
  if (target.port != 0) where_.port = target.port;
}

LibsshSession::~LibsshSession() {
  if (session_ == nullptr) return;
  // A word of farewell, so that the other side logs no failure; nobody waits for it.
  if (ssh_is_connected(session_)) ssh_blocking_flush(session_, static_cast<int>(absl::ToInt64Milliseconds(kFarewell)));
  if (event_ != nullptr) {
    ssh_event_remove_session(event_, session_);
    ssh_event_free(event_);
  }
  ssh_free(session_);  // closes its copy of the stream
  if (stream_) ::shutdown(stream_.get(), SHUT_RDWR);
}

absl::StatusOr<std::unique_ptr<LibsshSession>> LibsshSession::Create(const RemoteTarget& target, const SshFiles& files,
                                                                     const Cancellation& cancellation) {
  ssh_init();  // counted by libssh; the first call does the work
  std::unique_ptr<LibsshSession> session(new LibsshSession(target, files, cancellation));
  if (session->session_ == nullptr) return absl::FailedPreconditionError("libssh has no memory for a session");
  RETURN_IF_ERROR(session->Configure());
  return session;
}

// The configuration first, then what the command line says: libssh keeps what was set last.
absl::Status LibsshSession::Configure() {
  ssh_set_blocking(session_, 0);
  const std::string where = where_.text();
  if (ssh_options_set(session_, SSH_OPTIONS_HOST, target_.host.c_str()) != SSH_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("ssh to ", where, ": libssh does not take this as a host's name (letters, digits, '-' and '.'); ",
                     "--ssh-backend=openssh may"));
  }
  if (!target_.user.empty()) ssh_options_set(session_, SSH_OPTIONS_USER, target_.user.c_str());
  const char* const file = files_.config.empty() ? nullptr : files_.config.c_str();
  if (ssh_options_parse_config(session_, file) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ssh to ", where, ": the ssh configuration cannot be read: ", error()));
  }
  if (!target_.user.empty()) ssh_options_set(session_, SSH_OPTIONS_USER, target_.user.c_str());
  if (target_.port != 0) ssh_options_set(session_, SSH_OPTIONS_PORT, &target_.port);
  if (!files_.known_hosts.empty()) {
    ssh_options_set(session_, SSH_OPTIONS_KNOWNHOSTS, files_.known_hosts.c_str());
    ssh_options_set(session_, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  }
  // A configuration that says "no" would let libssh take a changed key as well. New keys have a flag of ours.
  const int strict = 1, off = 0;
  ssh_options_set(session_, SSH_OPTIONS_STRICTHOSTKEYCHECK, &strict);
  ssh_options_set(session_, SSH_OPTIONS_PASSWORD_AUTH, &off);
  ssh_options_set(session_, SSH_OPTIONS_KBDINT_AUTH, &off);
  if (Option(session_, SSH_OPTIONS_USER).empty()) ssh_options_set(session_, SSH_OPTIONS_USER, nullptr);
  where_.host = Option(session_, SSH_OPTIONS_HOST);
  where_.user = Option(session_, SSH_OPTIONS_USER);
  unsigned int port = 0;
  where_.port = ssh_options_get_port(session_, &port) == SSH_OK && port != 0 ? static_cast<int>(port) : 22;
  return absl::OkStatus();
}

absl::Status LibsshSession::OpenStream(Instant deadline, const std::function<void(HostStep)>& on_step) {
  const std::string proxy = Option(session_, SSH_OPTIONS_PROXYCOMMAND);
  if (!proxy.empty() && proxy != "none") {
    on_step(HostStep::kConnect);
    RETURN_IF_ERROR(OpenProxy(Expanded(proxy, where_, target_.host))) << "ssh to " << where_.text();
  } else if (target_.connect) {
    ASSIGN_OR_RETURN(stream_, ConnectAsTold(deadline, on_step), std::move(_) << "ssh to " << where_.text());
  } else {
    on_step(HostStep::kResolve);
    ASSIGN_OR_RETURN(stream_,
                     Dial(where_.host, where_.port, deadline, cancellation_, [&] { on_step(HostStep::kConnect); }),
                     std::move(_) << "ssh to " << where_.text());
  }
  const int copy = ::fcntl(stream_.get(), F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return ErrnoStatus(errno, absl::StrCat("ssh to ", where_.text()));
  ssh_options_set(session_, SSH_OPTIONS_FD, &copy);
  ssh_options_set(session_, SSH_OPTIONS_PROXYCOMMAND, "none");
  return absl::OkStatus();
}

// By way of the target's own function, one address after the other.
absl::StatusOr<UniqueFd> LibsshSession::ConnectAsTold(Instant deadline, const std::function<void(HostStep)>& on_step) {
  on_step(HostStep::kResolve);
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, LookUp(where_.host, deadline, cancellation_));
  on_step(HostStep::kConnect);
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  std::vector<std::string> reasons;
  for (const std::string& address : addresses) {
    absl::StatusOr<UniqueFd> stream = target_.connect(address, where_.port, deadline);
    if (stream.ok()) {
      ::fcntl(stream->get(), F_SETFL, ::fcntl(stream->get(), F_GETFL) | O_NONBLOCK);
      return stream;
    }
    if (reasons.empty() || !IsRetryable(absl::Status(code, ""))) code = stream.status().code();
    if (absl::IsCancelled(stream.status())) return stream;
    reasons.emplace_back(stream.status().message());
  }
  return absl::Status(code, absl::StrJoin(reasons, "; "));
}

// Run here and not by libssh: with no terminal to ask on, and known as a child of ours.
absl::Status LibsshSession::OpenProxy(const std::string& command) {
  ChildOptions options;
  options.arguments = {"/bin/sh", "-c", absl::StrCat("exec ", command)};
  options.environment = EnvironmentWith({"SSH_ASKPASS", "SSH_ASKPASS_REQUIRE"}, {"SSH_ASKPASS_REQUIRE=never"});
  options.one_stream = true;
  ASSIGN_OR_RETURN(proxy_, ChildProcess::Start(options), std::move(_) << "ProxyCommand `" << command << "`");
  stream_ = std::move(proxy_->input());
  return absl::OkStatus();
}

absl::Status LibsshSession::Drive(Instant deadline, const std::function<absl::StatusOr<bool>()>& step) {
  while (true) {
    ASSIGN_OR_RETURN(const bool done, step());
    if (done) return absl::OkStatus();
    const bool writes = (ssh_get_poll_flags(session_) & SSH_WRITE_PENDING) != 0;
    const auto events = static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN);
    RETURN_IF_ERROR(AwaitFd(stream_.get(), events, deadline, cancellation_)) << "ssh to " << where_.text();
  }
}

absl::Status LibsshSession::ExchangeKeys(Instant deadline) {
  return Drive(deadline, [&]() -> absl::StatusOr<bool> {
    const int result = ssh_connect(session_);
    if (result == SSH_OK) return PrepareToPump();
    if (result == SSH_AGAIN) return false;
    const std::string reason = error();
    if (CannotBeCured(reason)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "ssh to ", where_.text(), ": what answers there and libssh have no ", "protocol in common: ", reason));
    }
    return Lost("ssh began");
  });
}

absl::StatusOr<bool> LibsshSession::PrepareToPump() {
  event_ = ssh_event_new();
  if (event_ == nullptr || ssh_event_add_session(event_, session_) != SSH_OK) {
    return absl::FailedPreconditionError("libssh has no memory for an event");
  }
  return true;
}

void LibsshSession::Pump() { ssh_event_dopoll(event_, 0); }

std::string LibsshSession::error() const { return Quoted(ssh_get_error(session_)); }

absl::Status LibsshSession::Lost(absl::string_view what) const {
  std::string text = absl::StrCat("ssh to ", where_.text(), ": the connection was closed while ", what);
  if (!error().empty()) absl::StrAppend(&text, ": ", error());
  if (proxy_ != nullptr) {
    char words[4096];
    const ssize_t size = ::read(proxy_->error().get(), words, sizeof words);
    if (size > 0) absl::StrAppend(&text, "; the ProxyCommand said: ", Quoted({words, static_cast<size_t>(size)}));
  }
  return absl::UnavailableError(text);
}

std::string LibsshSession::Fingerprint() const {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(session_, &key) != SSH_OK) return "";
  std::string result = ssh_key_type_to_char(ssh_key_type(key));
  unsigned char* hash = nullptr;
  size_t size = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) == SSH_OK) {
    char* const text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
    if (text != nullptr) absl::StrAppend(&result, " ", text);
    ssh_string_free_char(text);
    ssh_clean_pubkey_hash(&hash);
  }
  ssh_key_free(key);
  return result;
}

std::string LibsshSession::KnownHostsFile() const { return Option(session_, SSH_OPTIONS_KNOWNHOSTS); }

absl::Status LibsshSession::CheckHostKey() {
  switch (ssh_session_is_known_server(session_)) {
    case SSH_KNOWN_HOSTS_OK:
      return absl::OkStatus();
    case SSH_KNOWN_HOSTS_CHANGED:
      return ChangedHostKey(where_, Fingerprint(), KnownHostsFile());
    case SSH_KNOWN_HOSTS_OTHER:
      return OtherHostKeyType(where_, Fingerprint(), KnownHostsFile());
    case SSH_KNOWN_HOSTS_UNKNOWN:
    case SSH_KNOWN_HOSTS_NOT_FOUND:
      break;
    case SSH_KNOWN_HOSTS_ERROR:
      return absl::FailedPreconditionError(
          absl::StrCat("ssh to ", where_.text(), ": its host key cannot be checked: ", error()));
  }
  if (!target_.accept_new_host_keys) return UnknownHostKey(where_, Fingerprint(), KnownHostsFile());
  if (ssh_session_update_known_hosts(session_) != SSH_OK) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ssh to ", where_.text(), ": its new host key cannot be added to ", KnownHostsFile(), ": ", error()));
  }
  return absl::OkStatus();
}

absl::Status LibsshSession::Authenticate(Instant deadline) {
  return AuthenticateLibssh(*this, target_.identity_file, deadline);
}

}  // namespace farandole
