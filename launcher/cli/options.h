#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace farandole {

// One option of the command line.
struct OptionSpec {
  // Every spelling with its dashes, separated by blanks; first the one that people use. The one with two dashes that
  // stands last is its canonical name.
  absl::string_view words;
  // How many words it takes after it: 0 (a switch), 1 or 2.
  int values = 0;
  // The title in --help that it stands under; empty: not shown (as in the original), and understood all the same.
  absl::string_view group;
  absl::string_view help;
  // What --help calls its value.
  absl::string_view value_name;
  // Of a switch: the setting that it changes, and what it changes it to. Several switches of one setting are several
  // answers to one question. Empty: a setting of its own, "1".
  absl::string_view setting;
  absl::string_view setting_value;

  // Whether the original does not know it.
  bool ours = false;
  // Whether each use adds a value; else the last one counts.
  bool repeatable = false;

  std::vector<absl::string_view> Words() const;
  // "--num-proc"
  absl::string_view Canonical() const;
  // "-np"
  absl::string_view Usual() const;
  // "--num-proc"; of a switch that has one, its setting.
  absl::string_view Setting() const;
};

// All options of the original, and ours.
absl::Span<const OptionSpec> AllOptions();

// The option with exactly this spelling, or nullptr.
const OptionSpec* FindOption(absl::string_view word);

// The spelling nearest to `word` that a person may have meant; empty if none is near.
std::string NearestOption(absl::string_view word);

// The same among any words.
std::string NearestWord(absl::string_view word, absl::Span<const absl::string_view> words);

}  // namespace farandole
