#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace farandole {

// What a host is asked to do with the agent's program, as commands for `ssh HOST COMMAND`, and its answers. Pure.
//
// A command must survive whatever login shell the user has there (bash, dash, zsh, csh, fish, busybox), so it is
// `exec /bin/sh -c '...'` in one line whose script has no single quote, no backslash and no exclamation mark. What rc
// files print is skipped: answers are lines that begin with "farandole-" and a token of this start.
struct PushScript {
  std::string hash;   // of the program, in hex: its name there
  std::string token;  // hex

  // Looks for the program and executes it with --guard in place of the shell. Answers: "start PID SSH_CONNECTION...",
  // and from there on both streams are the program's; or "need SYSTEM MACHINE gzip|plain": it is not there.
  std::string Start() const;

  // Takes the program from standard input, packed by gzip or not, `size` bytes unpacked, into the first folder after
  // `skip` where it can be written, tries whether it can be executed there, and puts it in its place in one step.
  // Answers: "stored FOLDER"; "failed INDEX REASON...": not in the INDEX-th folder, the next may do; "nowhere ...":
  // none is left, with what is wrong with each. Also removes what no job has used for 30 days.
  std::string Store(bool gzip, uint64_t size, int skip) const;

  // Ends process `pid`, if it is still the agent's guardian: by SIGUSR1, upon which it kills all that it guards, and if
  // it is still there half a second later by SIGKILL.
  std::string Kill(int64_t pid) const;
};

// Finds the answer in what a host prints.
class AnswerScanner {
 public:
  // More noise than this is none of ours.
  static constexpr size_t kMostNoise = 1 << 20;

  explicit AnswerScanner(absl::string_view token);

  // The words after the token, once the line is complete; not called again after that.
  absl::optional<std::string> Append(absl::string_view bytes);
  bool gave_up() const { return skipped_ > kMostNoise; }
  // What came after the answer's line; before there was one, the beginning of a line.
  const std::string& rest() const { return rest_; }
  // The last line before the answer, for a person.
  const std::string& last_noise() const { return last_noise_; }

 private:
  const std::string prefix_;
  std::string rest_, last_noise_;
  size_t skipped_ = 0;
};

}  // namespace farandole
