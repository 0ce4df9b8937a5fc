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

absl::Status Unknown(absl::string_view word) {
  const std::string nearest = NearestOption(word);
  return absl::InvalidArgumentError(absl::StrCat("there is no option ", Quote(word),
                                                 nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

bool IsOneLetter(absl::string_view word) { return word.size() == 2 && word[1] != '-'; }

// The options whose spelling begins with `prefix`, among the original's or among ours. The same option twice is not a
// second meaning.
absl::StatusOr<const OptionSpec*> ByPrefix(absl::string_view prefix, bool ours) {
  std::vector<absl::string_view> spellings;
  const OptionSpec* found = nullptr;
  bool several = false;
  for (const OptionSpec& option : AllOptions()) {
    if (option.ours != ours) continue;
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
  const OptionSpec* option = FindOption(word.substr(0, 2));
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
  if (const OptionSpec* option = FindOption(word)) return Match{option, absl::nullopt};
  const size_t equals = word.find('=');
  const absl::string_view name = word.substr(0, equals);
  absl::optional<std::string> attached;
  if (equals != absl::string_view::npos) attached = std::string(word.substr(equals + 1));
  if (const OptionSpec* option = FindOption(name)) return Match{option, attached};
  if (!absl::StartsWith(word, "--")) {
    if (absl::optional<Match> match = OneLetterWithValue(word)) return *match;
  }
  for (const bool ours : {false, true}) {
    ASSIGN_OR_RETURN(const OptionSpec* by_prefix, ByPrefix(name, ours));
    if (by_prefix != nullptr) return Match{by_prefix, attached};
  }
  return absl::StartsWith(word, "--") ? Unknown(name) : Glued(word);
}

bool IsNegativeNumber(absl::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
}

// A word with a blank in it that begins like an option and is none is a value: --mpi-args "-x PATH".
bool IsOption(absl::string_view word) {
  if (word.size() < 2 || word[0] != '-' || IsNegativeNumber(word)) return false;
  return !absl::StrContains(word, ' ') || Find(word).ok();
}

bool EndsReading(const OptionSpec& option) { return option.Usual() == "-h" || option.Usual() == "-v"; }

absl::Status MissingValue(const OptionSpec& option) {
  return absl::InvalidArgumentError(absl::StrCat("option ", option.Usual(), " needs ",
                                                 option.values == 1 ? "a value" : "two values", ": ", option.Usual(),
                                                 " ", option.value_name));
}

// The value of an option: what is attached to it, or the words from `*at` on; two are joined by a blank.
absl::StatusOr<std::string> TakeValue(const Match& match, absl::Span<const std::string> words, size_t* at) {
  if (match.attached) {
    if (match.attached->empty() || match.option->values > 1) return MissingValue(*match.option);
    return *match.attached;
  }
  std::vector<std::string> values;
  while (static_cast<int>(values.size()) < match.option->values) {
    if (*at == words.size() || words[*at].empty() || IsOption(words[*at])) return MissingValue(*match.option);
    values.push_back(words[(*at)++]);
  }
  return absl::StrJoin(values, " ");
}

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
  while (at < words.size() && words[at] != "--" && IsOption(words[at])) {
    const std::string& word = words[at++];
    ASSIGN_OR_RETURN(const Match match, Find(word));
    if (match.option->values > 0) {
      ASSIGN_OR_RETURN(std::string value, TakeValue(match, words, &at));
      out.options.push_back({match.option, std::move(value)});
      continue;
    }
    if (match.attached) return absl::InvalidArgumentError(absl::StrCat(match.option->Usual(), " takes no value"));
    out.options.push_back({match.option, ""});
    if (EndsReading(*match.option)) return out;
  }
  if (at < words.size() && words[at] == "--") {
    out.after_separator = true;
    ++at;
  }
  out.command.assign(words.begin() + at, words.end());
  return out;
}

}  // namespace farandole
