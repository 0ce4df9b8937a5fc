#include "launcher/exec/push_script.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace farandole {
namespace {

// In this order. The user's cache is shared by all hosts where the home is; the others are this host's own.
constexpr absl::string_view kFolders =
    "u=$(id -u); c=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}; "
    "set -- \"$c/farandole\" \"${TMPDIR:-/tmp}/farandole-$u\" \"/var/tmp/farandole-$u\" \"/dev/shm/farandole-$u\"; ";

std::string InShell(absl::string_view script) { return absl::StrCat("exec /bin/sh -c '", script, "'"); }

}  // namespace

std::string PushScript::Start() const {
  // A program, or a folder, that is somebody else's or a link is nobody's we know.
  return InShell(absl::StrCat("umask 077; ", kFolders, "for d do f=\"$d/agent-", hash, "\"; ",
                              "if [ -L \"$d\" ] || [ -L \"$f\" ]; then continue; fi; ",
                              "if [ -O \"$d\" ] && [ -f \"$f\" ] && [ -O \"$f\" ] && [ -x \"$f\" ]; then ",
                              "touch -c \"$f\" 2>/dev/null; echo; echo \"farandole-", token,
                              " start $$ $SSH_CONNECTION\"; ", "exec \"$f\" --guard; fi; done; ",
                              "z=plain; command -v gzip >/dev/null 2>&1 && z=gzip; ", "echo; echo \"farandole-", token,
                              " need $(uname -s) $(uname -m) $z\""));
}

std::string PushScript::Store(bool gzip, uint64_t size, int skip) const {
  return InShell(absl::StrCat(
      "umask 077; ", kFolders, "i=0; w=; for d do i=$((i+1)); if [ $i -le ", skip, " ]; then continue; fi; ",
      "mkdir -p \"$d\" 2>/dev/null; ", "if [ -L \"$d\" ]; then w=\"$w $d is a link;\"; continue; fi; ",
      "if [ -d \"$d\" ]; then :; else w=\"$w $d cannot be made;\"; continue; fi; ",
      "if [ -O \"$d\" ]; then :; else w=\"$w $d belongs to another user;\"; continue; fi; ",
      "chmod 700 \"$d\" 2>/dev/null; p=\"$d/.new-", token, "\"; ",
      "if (: > \"$p\") 2>/dev/null; then :; else w=\"$w $d cannot be written;\"; continue; fi; ", "r=; ",
      gzip ? "gzip -dc" : "cat", " > \"$p\" 2>/dev/null || r=\"it cannot be written in full\"; ",
      "[ -n \"$r\" ] || [ $(wc -c < \"$p\") -eq ", size, " ] || r=\"it did not arrive in full\"; ",
      "[ -n \"$r\" ] || chmod 700 \"$p\" || r=\"chmod fails\"; ",
      "[ -n \"$r\" ] || \"$p\" --version </dev/null >/dev/null 2>&1 || r=\"programs cannot be executed there\"; ",
      "[ -n \"$r\" ] || mv -f \"$p\" \"$d/agent-", hash, "\" || r=\"mv fails\"; echo; ",
      "if [ -n \"$r\" ]; then rm -f \"$p\"; echo \"farandole-", token, " failed $i $d: $r\"; exit 0; fi; ",
      "find \"$d\" -type f -name \"agent-*\" -mtime +30 -exec rm -f {} + 2>/dev/null; ",
      "find \"$d\" -type f -name \".new-*\" -mtime +1 -exec rm -f {} + 2>/dev/null; ", "echo \"farandole-", token,
      " stored $d\"; exit 0; done; cat >/dev/null; ", "echo; echo \"farandole-", token, " nowhere$w\""));
}

std::string PushScript::Kill(int64_t pid) const {
  return InShell(
      absl::StrCat("p=", pid, "; grep -q agent-", hash,
                   " /proc/$p/cmdline 2>/dev/null || exit 0; kill -USR1 $p; for i in 1 2 3 4 5; do "
                   "kill -0 $p 2>/dev/null || exit 0; sleep 0.1 2>/dev/null || sleep 1; done; kill -KILL $p"));
}

AnswerScanner::AnswerScanner(absl::string_view token) : prefix_(absl::StrCat("farandole-", token, " ")) {}

absl::optional<std::string> AnswerScanner::Append(absl::string_view bytes) {
  rest_.append(bytes.data(), bytes.size());
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const absl::string_view line = absl::string_view(rest_).substr(begin, end - begin);
    if (absl::string_view(line).substr(0, prefix_.size()) == prefix_) {
      std::string answer(absl::StripAsciiWhitespace(line.substr(prefix_.size())));
      rest_.erase(0, end + 1);
      return answer;
    }
    if (!absl::StripAsciiWhitespace(line).empty()) last_noise_ = std::string(line.substr(0, 1000));
    skipped_ += line.size() + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() > kMostNoise) skipped_ += std::exchange(rest_, "").size();
  return absl::nullopt;
}

}  // namespace farandole
