#include "launcher/cli/hosts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "launcher/cli/quote.h"

namespace farandole {
namespace {

// What is wrong with a piece of text, and where in it.
struct Problem {
  size_t offset = 0;
  std::string what;
};

constexpr size_t kMaxNameLength = 253;  // of a DNS name

bool IsNameByte(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-'; }
bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

absl::optional<Problem> ParseSlots(absl::string_view text, size_t offset, int* slots) {
  if (text.empty()) return Problem{offset, "the number of slots is missing"};
  if (text[0] == '-' && AllDigits(text.substr(1))) return Problem{offset, "a number of slots cannot be negative"};
  if (!AllDigits(text)) return Problem{offset, absl::StrCat(Quote(text), " is not a number of slots; write HOST:4")};
  if (!absl::SimpleAtoi(text, slots) || *slots > kMaxSlots) {
    return Problem{offset, absl::StrCat("more than ", kMaxSlots, " slots on one host")};
  }
  if (*slots == 0) return Problem{offset, "0 slots; leave the host out instead"};
  return absl::nullopt;
}

absl::optional<Problem> CheckName(absl::string_view name) {
  if (name.empty()) return Problem{0, "the host's name is missing"};
  if (name.size() > kMaxNameLength) return Problem{kMaxNameLength, "longer than a host's name can be"};
  for (size_t i = 0; i < name.size(); ++i) {
    if (!IsNameByte(name[i])) return Problem{i, absl::StrCat(Quote(name.substr(i, 1)), " cannot be in a host's name")};
  }
  if (name[0] == '-' || name[0] == '.') return Problem{0, "a host's name cannot begin so"};
  return absl::nullopt;
}

// The shape only: whether there is such an address is found when it is looked up.
bool IsIpv6Shape(absl::string_view text) {
  const absl::string_view address = text.substr(0, text.find('%'));  // "%eth0" names a scope
  const auto hex_or_separator = [](char c) { return absl::ascii_isxdigit(c) || c == ':' || c == '.'; };
  return std::count(address.begin(), address.end(), ':') >= 2 &&
         std::all_of(address.begin(), address.end(), hex_or_separator) &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isgraph(c); });
}

Problem MissingBrackets(absl::string_view token) {
  const size_t last = token.rfind(':');
  const absl::string_view before = token.substr(0, last), after = token.substr(last + 1);
  if (AllDigits(after) && !absl::EndsWith(before, ":")) {
    return Problem{0, absl::StrCat("an IPv6 address needs brackets; write [", before, "]:", after)};
  }
  return Problem{0, absl::StrCat("an IPv6 address needs brackets; write [", token, "]")};
}

absl::optional<Problem> ParseBracketed(absl::string_view token, HostSpec* host, bool* has_slots) {
  const size_t close = token.find(']');
  if (close == absl::string_view::npos) return Problem{0, "the bracket is not closed; write [::1]:2"};
  const absl::string_view address = token.substr(1, close - 1), rest = token.substr(close + 1);
  if (!IsIpv6Shape(address)) return Problem{1, absl::StrCat(Quote(address), " is not an IPv6 address")};
  host->name = std::string(address);
  *has_slots = !rest.empty();
  if (rest.empty()) return absl::nullopt;
  if (rest[0] != ':') return Problem{close + 1, "expected ':' and a number of slots after the bracket"};
  return ParseSlots(rest.substr(1), close + 2, &host->slots);
}

// HOST, HOST:N, [V6], [V6]:N; the token has no blanks.
absl::optional<Problem> ParseToken(absl::string_view token, HostSpec* host, bool* has_slots) {
  *has_slots = false;
  if (token.empty()) return Problem{0, "a host is missing"};
  if (const size_t at = token.find('@'); at != absl::string_view::npos) {
    return Problem{0, absl::StrCat("users for ssh come with remote hosts in a later version; write ",
                                   Quote(token.substr(at + 1)))};
  }
  if (token[0] == '[') return ParseBracketed(token, host, has_slots);
  const size_t colon = token.find(':');
  if (const auto colons = std::count(token.begin(), token.end(), ':'); colons > 1) {
    if (absl::StrContains(token, "::") || colons >= 7) return MissingBrackets(token);
    return Problem{token.find(':', colon + 1),
                   "a second ':'; write HOST:SLOTS (ports for ssh come in a later version)"};
  }
  const absl::string_view name = token.substr(0, colon);
  if (absl::optional<Problem> problem = CheckName(name)) return problem;
  host->name = std::string(name);
  if (colon == absl::string_view::npos) return absl::nullopt;
  *has_slots = true;
  return ParseSlots(token.substr(colon + 1), colon + 1, &host->slots);
}

// One line of a hostfile without its comment: HOST, HOST:N, HOST slots=N.
absl::optional<Problem> ParseLine(absl::string_view line, HostSpec* host) {
  const auto is_blank = [](char c) { return absl::ascii_isspace(c); };
  const size_t end = std::find_if(line.begin(), line.end(), is_blank) - line.begin();
  bool has_slots = false;
  if (absl::optional<Problem> problem = ParseToken(line.substr(0, end), host, &has_slots)) return problem;

  size_t at = end;
  const auto skip_blanks = [&] {
    while (at < line.size() && is_blank(line[at])) ++at;
  };
  skip_blanks();
  if (at == line.size()) return absl::nullopt;
  const size_t word = at;
  const Problem not_understood{word, "not understood; write \"HOST slots=4\", one host per line"};
  if (!absl::StartsWith(line.substr(at), "slots")) return not_understood;
  at += 5;
  skip_blanks();
  if (at == line.size() || line[at] != '=') return not_understood;
  if (has_slots) return Problem{word, "the slots are given twice"};
  ++at;
  skip_blanks();
  return ParseSlots(line.substr(at), at, &host->slots);
}

absl::Status Error(absl::string_view place, size_t column, absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ", column ", column, ": ", Quote(text), ": ", what));
}

// Adds `host`, or says where its name was before.
absl::optional<Problem> Add(HostSpec host, std::string place, std::map<std::string, std::string>* places,
                            std::vector<HostSpec>* hosts) {
  const auto [before, added] = places->emplace(host.name, std::move(place));
  if (!added) {
    return Problem{0,
                   absl::StrCat("the host was named before (", before->second, "); name it once, with all its slots")};
  }
  hosts->push_back(std::move(host));
  return absl::nullopt;
}

// Calls `piece(text, offset)` for each piece of `text` between `separator`s until one returns an error.
template <typename Function>
absl::Status ForEachPiece(absl::string_view text, char separator, Function piece) {
  size_t begin = 0;
  while (true) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (absl::Status status = piece(text.substr(begin, end - begin), begin); !status.ok()) return status;
    if (end == text.size()) return absl::OkStatus();
    begin = end + 1;
  }
}

// `*text` without the blanks around it; returns how many were before it.
size_t Trim(absl::string_view* text) {
  const absl::string_view left = absl::StripLeadingAsciiWhitespace(*text);
  const size_t removed = text->size() - left.size();
  *text = absl::StripTrailingAsciiWhitespace(left);
  return removed;
}

}  // namespace

absl::StatusOr<std::vector<HostSpec>> ParseHostList(absl::string_view source, absl::string_view text) {
  std::vector<HostSpec> hosts;
  std::map<std::string, std::string> places;
  const absl::Status status = ForEachPiece(text, ',', [&](absl::string_view item, size_t offset) {
    offset += Trim(&item);
    const auto error = [&, shown = item](const Problem& problem) {
      return Error(source, offset + problem.offset + 1, shown.empty() ? text : shown, problem.what);
    };
    const auto blank = std::find_if(item.begin(), item.end(), [](char c) { return absl::ascii_isspace(c); });
    if (blank != item.end()) {
      return error({static_cast<size_t>(blank - item.begin()), "a blank inside; hosts are separated by commas"});
    }
    HostSpec host;
    bool has_slots = false;
    if (auto problem = ParseToken(item, &host, &has_slots)) return error(*problem);
    if (auto problem = Add(std::move(host), absl::StrCat("column ", offset + 1), &places, &hosts))
      return error(*problem);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return hosts;
}

absl::StatusOr<std::vector<HostSpec>> ParseHostfile(absl::string_view path, absl::string_view text) {
  std::vector<HostSpec> hosts;
  std::map<std::string, std::string> places;
  int line_number = 0;
  const absl::Status status = ForEachPiece(text, '\n', [&](absl::string_view line, size_t) {
    ++line_number;
    absl::string_view rest = line.substr(0, line.find('#'));
    const size_t offset = Trim(&rest);
    if (rest.empty()) return absl::OkStatus();
    HostSpec host;
    absl::optional<Problem> problem = ParseLine(rest, &host);
    if (!problem) problem = Add(std::move(host), absl::StrCat("line ", line_number), &places, &hosts);
    if (!problem) return absl::OkStatus();
    return Error(absl::StrCat(path, ", line ", line_number), offset + problem->offset + 1,
                 absl::StripTrailingAsciiWhitespace(line), problem->what);
  });
  if (!status.ok()) return status;
  if (hosts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no host in it; write one per line, as \"HOST slots=4\""));
  }
  return hosts;
}

bool LooksLikeHosts(absl::string_view word) {
  while (absl::ConsumePrefix(&word, ",")) {
  }
  while (absl::ConsumeSuffix(&word, ",")) {
  }
  if (word.empty()) return false;
  bool any_slots = false;
  const absl::Status status = ForEachPiece(word, ',', [&](absl::string_view item, size_t) {
    HostSpec host;
    bool has_slots = false;
    if (ParseToken(item, &host, &has_slots)) return absl::InvalidArgumentError("");
    any_slots |= has_slots;
    return absl::OkStatus();
  });
  return status.ok() && any_slots;
}

std::string DescribeHosts(const std::vector<HostSpec>& hosts) {
  return absl::StrJoin(hosts, ", ", [](std::string* out, const HostSpec& host) {
    const bool v6 = absl::StrContains(host.name, ':');
    absl::StrAppend(out, v6 ? "[" : "", host.name, v6 ? "]" : "", ":", host.slots);
  });
}

}  // namespace farandole
