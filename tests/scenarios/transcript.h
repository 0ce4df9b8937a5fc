#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farandole {

// A text file that is test and documentation: commands, and below each group of them what they led to.
//
//   # What it shows.
//
//   command words name=value
//   another command
//   ----
//   expected lines
//
//   next command
//   ----
//
// Expected text ends at the first empty line. Lines that begin with '#' outside of it are for readers.
struct TranscriptBlock {
  std::vector<std::string> lines;     // comments and commands, as written
  std::vector<std::string> commands;  // without the comments
  int first_line = 0;                 // in the file, from 1
  std::string expected;               // lines, each with its end
};

// InvalidArgument: commands without "----" below them; names the line.
absl::StatusOr<std::vector<TranscriptBlock>> ParseTranscript(absl::string_view text);

// The text again, with what `run` returns in place of what was expected. `run` is called for each block, in order.
std::string RewriteTranscript(const std::vector<TranscriptBlock>& blocks,
                              const std::function<std::string(const TranscriptBlock&)>& run);

}  // namespace farandole
