#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace farandole {

// One option of the command line, known by name whether this version has it or not: one that it does not have is an
// error that says so, and is never ignored.
struct OptionSpec {
  // Every spelling with its dashes, separated by blanks; first the one that people use. The one with two dashes that
  // stands last is its canonical name.
  absl::string_view words;
  // How many words it takes after it: 0 (a switch), 1 or 2.
  int values = 0;
  // Empty: not there yet. Else one line for --help.
  absl::string_view help;
  // What --help calls its value.
  absl::string_view value_name;

  bool available() const { return !help.empty(); }
  std::vector<absl::string_view> Words() const;
  // "--num-proc"
  absl::string_view Canonical() const;
  // "-np"
  absl::string_view Usual() const;
};

// All options of the original, and ours.
absl::Span<const OptionSpec> AllOptions();

// The spelling nearest to `word` that a person may have meant; empty if none is near.
std::string NearestOption(absl::string_view word);

// The same among any words.
std::string NearestWord(absl::string_view word, absl::Span<const absl::string_view> words);

}  // namespace farandole
