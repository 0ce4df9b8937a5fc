#include "launcher/ssh/ssh_errors.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace farandole {
namespace {

constexpr size_t kQuotedBytes = 400;
constexpr absl::string_view kDebug = "debug1: ";

std::string Shown(absl::string_view fingerprint) {
  return fingerprint.empty() ? "" : absl::StrCat(" (", fingerprint, ")");
}

std::string KnownHostsName(const SshEndpoint& where) {
  return where.port == 22 ? where.host : absl::StrCat("[", where.host, "]:", where.port);
}

std::string KeyScan(const SshEndpoint& where, absl::string_view known_hosts) {
  return absl::StrCat("ssh-keyscan -p ", where.port, " ", where.host, " >> ", known_hosts);
}

// What the client itself reported: neither its debugging nor blank lines.
std::vector<std::string> Reports(absl::string_view log) {
  std::vector<std::string> reports;
  for (absl::string_view line : absl::StrSplit(log, absl::ByAnyChar("\r\n"), absl::SkipWhitespace())) {
    if (!absl::StartsWith(line, "debug") && !absl::StartsWith(line, "OpenSSH_")) reports.emplace_back(line);
  }
  return reports;
}

bool HasAny(absl::string_view text, std::initializer_list<absl::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](absl::string_view part) { return absl::StrContains(text, part); });
}

// The rest of the last line that begins with `prefix`; empty if there is none.
std::string LastAfter(absl::string_view log, absl::string_view prefix) {
  std::string found;
  for (absl::string_view line : absl::StrSplit(log, absl::ByAnyChar("\r\n"))) {
    if (absl::ConsumePrefix(&line, prefix)) found = std::string(line);
  }
  return found;
}

// "Authenticating to HOST:PORT as 'USER'" and "Connecting to HOST [ADDRESS] port PORT." tell where it really goes.
void Refine(SshEndpoint* where, absl::string_view log) {
  const std::string connecting = LastAfter(log, "debug1: Connecting to ");
  const std::vector<std::string> words = absl::StrSplit(connecting, ' ');
  if (words.size() >= 4) {
    int port = 0;
    if (absl::SimpleAtoi(absl::StripSuffix(words[3], "."), &port)) where->port = port;
  }
  const std::string authenticating = LastAfter(log, "debug1: Authenticating to ");
  const size_t as = authenticating.find(" as '");
  if (as == std::string::npos) return;
  where->user = std::string(absl::StripSuffix(authenticating.substr(as + 5), "'"));
  const std::string address = authenticating.substr(0, as);
  int port = 0;
  if (absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) where->port = port;
}

std::string OpensshFingerprint(absl::string_view log) {
  return LastAfter(log, "debug1: Server host key: ");  // "ssh-ed25519 SHA256:..."
}

absl::Status Refused(const SshEndpoint& where, absl::string_view log, const std::vector<std::string>& locked_keys,
                     absl::string_view report) {
  AuthenticationFailure failure;
  failure.methods = LastAfter(log, "debug1: Authentications that can continue: ");
  for (absl::string_view line : absl::StrSplit(log, absl::ByAnyChar("\r\n"))) {
    if (!absl::ConsumePrefix(&line, "debug1: Offering public key: ") &&
        !absl::ConsumePrefix(&line, "debug1: Trying private key: ")) {
      continue;
    }
    failure.keys_tried.emplace_back(line.substr(0, line.find(' ')));
  }
  failure.keys_locked = locked_keys;
  failure.reason = Quoted(report);
  return AuthenticationRefused(where, failure);
}

}  // namespace

std::string SshEndpoint::text() const { return absl::StrCat(user, user.empty() ? "" : "@", host, " port ", port); }

absl::Status UnknownHostKey(const SshEndpoint& where, absl::string_view fingerprint, absl::string_view known_hosts) {
  return absl::FailedPreconditionError(absl::StrCat("ssh to ", where.text(), ": its host key", Shown(fingerprint),
                                                    " is not known: nobody has confirmed it in ", known_hosts,
                                                    ". Check the fingerprint, then `", KeyScan(where, known_hosts),
                                                    "`; or accept new keys with --ssh-accept-new-host-keys"));
}

absl::Status ChangedHostKey(const SshEndpoint& where, absl::string_view fingerprint, absl::string_view known_hosts) {
  return absl::FailedPreconditionError(
      absl::StrCat("ssh to ", where.text(), ": its host key", Shown(fingerprint), " is not the one in ", known_hosts,
                   ": another machine answers under this name, or the host was installed again. If that is expected, "
                   "`ssh-keygen -f ",
                   known_hosts, " -R '", KnownHostsName(where), "'` forgets the old key"));
}

absl::Status OtherHostKeyType(const SshEndpoint& where, absl::string_view fingerprint, absl::string_view known_hosts) {
  return absl::FailedPreconditionError(absl::StrCat(
      "ssh to ", where.text(), ": ", known_hosts, " has keys of this host, but none of the type that it showed",
      Shown(fingerprint), ". Check the fingerprint, then `", KeyScan(where, known_hosts), "`"));
}

absl::Status AuthenticationRefused(const SshEndpoint& where, const AuthenticationFailure& failure) {
  std::string text = absl::StrCat("ssh to ", where.text(), ": not let in as this user");
  if (!failure.methods.empty()) absl::StrAppend(&text, "; the host takes: ", failure.methods);
  absl::StrAppend(&text, "; tried: ", failure.keys_tried.empty() ? "no key" : absl::StrJoin(failure.keys_tried, ", "));
  for (const std::string& key : failure.keys_locked) {
    absl::StrAppend(&text, "; the key ", key, " needs a passphrase, which is never asked for here");
  }
  for (const std::string& key : failure.keys_unusable) absl::StrAppend(&text, "; the key ", key);
  if (!failure.reason.empty()) absl::StrAppend(&text, "; it said: ", failure.reason);
  absl::StrAppend(&text, ". ");
  if (failure.keys_locked.empty()) {
    absl::StrAppend(&text, "Give it a key with `ssh-copy-id -p ", where.port, " ", where.user,
                    where.user.empty() ? "" : "@", where.host, "`, or name another with -i, or another user as user@",
                    where.host);
  } else {
    absl::StrAppend(&text, "Give the key to an ssh agent: `ssh-add ", failure.keys_locked.front(), "`");
  }
  return absl::PermissionDeniedError(text);
}

bool NeedsPassphrase(absl::string_view key_file_text) {
  constexpr absl::string_view kOpenssh = "-----BEGIN OPENSSH PRIVATE KEY-----";
  // The beginning of every key of that kind without a passphrase: its magic word, cipher "none", derivation "none".
  constexpr absl::string_view kPlain = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZ";
  absl::string_view text = absl::StripLeadingAsciiWhitespace(key_file_text.substr(0, 4096));
  if (absl::ConsumePrefix(&text, kOpenssh)) {
    return !absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), kPlain);
  }
  return absl::StartsWith(text, "-----BEGIN ENCRYPTED PRIVATE KEY-----") ||
         absl::StrContains(text, "Proc-Type: 4,ENCRYPTED");
}

std::vector<std::string> KeysInOpensshLog(absl::string_view log) {
  std::vector<std::string> keys;
  for (absl::string_view line : absl::StrSplit(log, absl::ByAnyChar("\r\n"))) {
    if (!absl::ConsumePrefix(&line, kDebug)) continue;
    if (!absl::ConsumePrefix(&line, "Offering public key: ") && !absl::ConsumePrefix(&line, "Trying private key: ") &&
        !absl::ConsumePrefix(&line, "Will attempt key: ")) {
      continue;
    }
    const std::string key(line.substr(0, line.find(' ')));
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

absl::Status FromOpensshLog(SshEndpoint where, absl::string_view log, const std::vector<std::string>& locked_keys) {
  Refine(&where, log);
  const std::vector<std::string> reports = Reports(log);
  const std::string all = absl::StrJoin(reports, "\n");
  const std::string last = reports.empty() ? "ssh ended without a word" : Quoted(reports.back());
  const std::string text = absl::StrCat("ssh to ", where.text(), ": ", last);
  if (HasAny(all, {"HOST IDENTIFICATION HAS CHANGED", "Offending "})) {
    return ChangedHostKey(where, OpensshFingerprint(log), "~/.ssh/known_hosts");
  }
  if (HasAny(all, {"Host key verification failed", "host key is known for"})) {
    return UnknownHostKey(where, OpensshFingerprint(log), "~/.ssh/known_hosts");
  }
  if (HasAny(all, {"Permission denied", "Too many authentication failures"})) {
    return Refused(where, log, locked_keys, last);
  }
  if (HasAny(all, {"Unable to negotiate", "no matching", "Bad owner or permissions", "Bad configuration option",
                   "terminating,", "Bad port", "Protocol major versions differ", "Invalid SSH identification",
                   "banner line contains invalid characters", "unix_listener"})) {
    return absl::FailedPreconditionError(text);
  }
  if (HasAny(all, {"Could not resolve hostname"})) {
    return absl::UnavailableError(absl::StrCat(text, " (this machine's resolver does not know it)"));
  }
  if (HasAny(all, {"Connection refused"})) {
    return absl::UnavailableError(absl::StrCat(text, ". Does an ssh server run there, on this port?"));
  }
  if (HasAny(all, {"Connection timed out", "Operation timed out", "No route to host", "Network is unreachable",
                   "Host is down", "Connection reset", "Connection closed", "closed by", "Broken pipe",
                   "Timeout, server", "kex_exchange_identification", "ssh_dispatch_run_fatal", "Temporary failure"})) {
    return absl::UnavailableError(text);
  }
  return absl::UnknownError(text);
}

std::string Quoted(absl::string_view foreign) {
  std::string line;
  for (const char byte : absl::StripAsciiWhitespace(foreign)) {
    if (line.size() >= kQuotedBytes) return line + "...";
    const auto value = static_cast<unsigned char>(byte);
    line += value < 0x20 || value == 0x7f ? ' ' : byte;
  }
  return line;
}

}  // namespace farandole
