#include "tests/scenarios/transcript.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace farandole {
namespace {

constexpr absl::string_view kRule = "----";

}  // namespace

absl::StatusOr<std::vector<TranscriptBlock>> ParseTranscript(absl::string_view text) {
  std::vector<TranscriptBlock> blocks;
  TranscriptBlock block;
  bool expecting = false;
  int number = 0;
  const auto finish = [&] {
    blocks.push_back(std::exchange(block, TranscriptBlock()));
    expecting = false;
  };
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    ++number;
    if (expecting && line.empty()) {
      finish();
    } else if (expecting) {
      absl::StrAppend(&block.expected, line, "\n");
    } else if (line == kRule) {
      expecting = true;
    } else {
      if (block.first_line == 0) block.first_line = number;
      block.lines.emplace_back(line);
      if (!line.empty() && line[0] != '#') block.commands.emplace_back(line);
    }
  }
  if (expecting) {
    finish();
  } else if (!block.commands.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("line ", block.first_line, ": no ", kRule, " below these commands"));
  }
  return blocks;
}

std::string RewriteTranscript(const std::vector<TranscriptBlock>& blocks,
                              const std::function<std::string(const TranscriptBlock&)>& run) {
  std::string text;
  for (const TranscriptBlock& block : blocks) {
    if (!text.empty()) absl::StrAppend(&text, "\n");
    for (const std::string& line : block.lines) absl::StrAppend(&text, line, "\n");
    absl::StrAppend(&text, kRule, "\n", run(block));
  }
  return text;
}

}  // namespace farandole
