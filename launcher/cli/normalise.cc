#include "launcher/cli/normalise.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "launcher/cli/quote.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// An option as it was found at the start of a word.
struct Match {
  const OptionSpec* option = nullptr;
  absl::optional<std::string> attached;  // the value in the same word
};

absl::Status NotThereYet(absl::string_view word) {
  std::vector<absl::string_view> there;
  for (const OptionSpec& option : AllOptions()) {
    if (option.available()) there.push_back(option.Usual());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("option ", word, " is not there yet (this version has: ", absl::StrJoin(there, ", "), ")"));
}

absl::Status Unknown(absl::string_view word) {
  const std::string nearest = NearestOption(word);
  return absl::InvalidArgumentError(absl::StrCat("there is no option ", Quote(word),
                                                 nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

bool IsOneLetter(absl::string_view word) { return word.size() == 2 && word[1] != '-'; }

const OptionSpec* Exactly(absl::string_view word) {
  for (const OptionSpec& option : AllOptions()) {
    for (absl::string_view spelling : option.Words()) {
      if (spelling == word) return &option;
    }
  }
  return nullptr;
}

// The option whose spelling begins with `prefix`. The same option twice is not a second meaning.
absl::StatusOr<const OptionSpec*> ByPrefix(absl::string_view prefix) {
  std::vector<absl::string_view> spellings;
  const OptionSpec* found = nullptr;
  bool several = false;
  for (const OptionSpec& option : AllOptions()) {
    for (absl::string_view spelling : option.Words()) {
      if (!absl::StartsWith(spelling, prefix)) continue;
      several |= found != nullptr && found != &option;
      found = &option;
      spellings.push_back(spelling);
    }
  }
  if (!several) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("option ", prefix, " may mean each of ", absl::StrJoin(spellings, ", "), "; write more of it"));
}

// "-Hhost:2": a one-letter option that takes a value, with the value.
absl::optional<Match> OneLetterWithValue(absl::string_view word) {
  const OptionSpec* option = Exactly(word.substr(0, 2));
  if (option == nullptr || !IsOneLetter(word.substr(0, 2)) || option->values != 1) return absl::nullopt;
  return Match{option, std::string(absl::StripPrefix(word.substr(2), "="))};
}

// "-np4": what is said about a long word with one dash and its value glued to it.
absl::Status Glued(absl::string_view word) {
  for (const OptionSpec& option : AllOptions()) {
    const absl::string_view usual = option.Usual();
    if (option.values == 1 && !absl::StartsWith(usual, "--") && absl::StartsWith(word, usual) &&
        absl::ascii_isdigit(word[usual.size()])) {
      return absl::InvalidArgumentError(absl::StrCat("there is no option ", Quote(word), "; write ", usual, " ",
                                                     absl::Utf8SafeCHexEscape(word.substr(usual.size()))));
    }
  }
  return Unknown(word);
}

absl::StatusOr<Match> Find(absl::string_view word) {
  if (const OptionSpec* option = Exactly(word)) return Match{option, absl::nullopt};
  const size_t equals = word.find('=');
  const absl::string_view name = word.substr(0, equals);
  absl::optional<std::string> attached;
  if (equals != absl::string_view::npos) attached = std::string(word.substr(equals + 1));
  if (const OptionSpec* option = Exactly(name)) return Match{option, attached};
  if (!absl::StartsWith(word, "--")) {
    if (absl::optional<Match> match = OneLetterWithValue(word)) return *match;
  }
  ASSIGN_OR_RETURN(const OptionSpec* by_prefix, ByPrefix(name));
  if (by_prefix != nullptr) return Match{by_prefix, attached};
  return absl::StartsWith(word, "--") ? Unknown(name) : Glued(word);
}

bool IsNegativeNumber(absl::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
}

bool IsOption(absl::string_view word) { return word.size() > 1 && word[0] == '-' && !IsNegativeNumber(word); }

bool EndsReading(const OptionSpec& option) { return option.Usual() == "-h" || option.Usual() == "-v"; }

}  // namespace

std::vector<std::string> NormalisedWords::Canonical() const {
  std::vector<std::string> words;
  for (const Given& given : options) {
    words.push_back(absl::StrCat(given.option->Canonical(), given.option->values == 0 ? "" : "=", given.value));
  }
  return words;
}

absl::StatusOr<NormalisedWords> Normalise(absl::Span<const std::string> words) {
  NormalisedWords out;
  size_t at = 0;
  while (at < words.size() && IsOption(words[at]) && words[at] != "--") {
    const std::string& word = words[at++];
    ASSIGN_OR_RETURN(Match match, Find(word));
    if (!match.option->available()) return NotThereYet(match.option->Usual());
    if (match.option->values == 0) {
      if (match.attached) return absl::InvalidArgumentError(absl::StrCat(match.option->Usual(), " takes no value"));
      out.options.push_back({match.option, ""});
      if (EndsReading(*match.option)) return out;
      continue;
    }
    if (!match.attached && at < words.size() && !IsOption(words[at])) match.attached = words[at++];
    if (!match.attached || match.attached->empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "option ", match.option->Usual(), " needs a value: ", match.option->Usual(), " ", match.option->value_name));
    }
    out.options.push_back({match.option, *std::move(match.attached)});
  }
  if (at < words.size() && words[at] == "--") {
    out.after_separator = true;
    ++at;
  }
  out.command.assign(words.begin() + at, words.end());
  return out;
}

}  // namespace farandole
