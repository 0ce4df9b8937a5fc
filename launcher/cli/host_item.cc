#include "launcher/cli/host_item.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "launcher/cli/options.h"
#include "launcher/cli/quote.h"

namespace farandole {
namespace {

constexpr size_t kMaxNameLength = 253;  // of a DNS name
constexpr size_t kMaxUserLength = 256;
constexpr int kMaxPort = 65535;
constexpr absl::string_view kKeys[] = {"slots", "port", "user"};

bool IsBlank(char c) { return absl::ascii_isspace(c); }
bool IsNameByte(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-'; }
// Also those of directory services: DOMAIN\me, me@domain.
bool IsUserByte(char c) { return IsNameByte(c) || c == '+' || c == '$' || c == '\\' || c == '@'; }
bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

absl::optional<HostProblem> ParseSlots(absl::string_view text, size_t offset, HostLine* line) {
  if (text.empty()) return HostProblem{offset, "the number of slots is missing"};
  if (text[0] == '-' && AllDigits(text.substr(1))) return HostProblem{offset, "a number of slots cannot be negative"};
  if (!AllDigits(text))
    return HostProblem{offset, absl::StrCat(Quote(text), " is not a number of slots; write HOST:4")};
  if (line->has_slots) return HostProblem{offset, "the slots are given twice"};
  if (!absl::SimpleAtoi(text, &line->host.slots) || line->host.slots > kMaxSlots) {
    return HostProblem{offset, absl::StrCat("more than ", kMaxSlots, " slots on one host")};
  }
  if (line->host.slots == 0) return HostProblem{offset, "0 slots; leave the host out instead"};
  line->has_slots = true;
  return absl::nullopt;
}

absl::optional<HostProblem> ParsePort(absl::string_view text, size_t offset, HostLine* line) {
  if (line->host.ssh_port != 0) return HostProblem{offset, "the port is given twice"};
  int port = 0;
  if (!AllDigits(text) || !absl::SimpleAtoi(text, &port) || port < 1 || port > kMaxPort) {
    return HostProblem{offset, absl::StrCat(Quote(text), " is not a port for ssh; write port=2222, 1 to ", kMaxPort)};
  }
  line->host.ssh_port = port;
  return absl::nullopt;
}

// What begins with '-' could be taken for an option by a program that it is handed to.
absl::optional<HostProblem> ParseUser(absl::string_view text, size_t offset, HostLine* line) {
  if (!line->host.user.empty()) return HostProblem{offset, "the user is given twice"};
  if (text.empty()) return HostProblem{offset, "the user's name is missing"};
  const auto odd = std::find_if_not(text.begin(), text.end(), IsUserByte);
  if (text[0] == '-' || odd != text.end() || text.size() > kMaxUserLength) {
    return HostProblem{offset, absl::StrCat(Quote(text), " cannot be a user's name")};
  }
  line->host.user = std::string(text);
  return absl::nullopt;
}

absl::optional<HostProblem> CheckName(absl::string_view name, size_t offset) {
  if (name.empty()) return HostProblem{offset, "the host's name is missing"};
  if (name.size() > kMaxNameLength) return HostProblem{offset + kMaxNameLength, "longer than a host's name can be"};
  const auto odd = std::find_if_not(name.begin(), name.end(), IsNameByte);
  if (odd != name.end()) {
    const size_t at = odd - name.begin();
    return HostProblem{offset + at, absl::StrCat(Quote(name.substr(at, 1)), " cannot be in a host's name")};
  }
  if (name[0] == '-' || name[0] == '.') return HostProblem{offset, "a host's name cannot begin so"};
  return absl::nullopt;
}

// The shape only: whether there is such an address is found when it is looked up.
bool IsIpv6Shape(absl::string_view text) {
  const size_t percent = text.find('%');  // "%eth0" names a scope; a comma in it would end the host in a list
  const absl::string_view address = text.substr(0, percent);
  const absl::string_view scope = percent == absl::string_view::npos ? "none" : text.substr(percent + 1);
  const auto hex_or_separator = [](char c) { return absl::ascii_isxdigit(c) || c == ':' || c == '.'; };
  return text.size() <= kMaxNameLength && std::count(address.begin(), address.end(), ':') >= 2 &&
         std::all_of(address.begin(), address.end(), hex_or_separator) && !scope.empty() &&
         std::all_of(scope.begin(), scope.end(), IsNameByte);
}

std::string MissingBrackets(absl::string_view word) {
  const size_t last = word.rfind(':');
  const absl::string_view before = word.substr(0, last), after = word.substr(last + 1);
  if (AllDigits(after) && !absl::EndsWith(before, ":")) {
    return absl::StrCat("an IPv6 address needs brackets; write [", before, "]:", after);
  }
  return absl::StrCat("an IPv6 address needs brackets; write [", word, "]");
}

absl::optional<HostProblem> ParseBracketed(absl::string_view word, size_t offset, HostLine* line) {
  const size_t close = word.find(']');
  if (close == absl::string_view::npos) return HostProblem{offset, "the bracket is not closed; write [::1]:2"};
  const absl::string_view address = word.substr(1, close - 1), rest = word.substr(close + 1);
  if (!IsIpv6Shape(address)) return HostProblem{offset + 1, absl::StrCat(Quote(address), " is not an IPv6 address")};
  line->host.name = std::string(address);
  if (rest.empty()) return absl::nullopt;
  if (rest[0] != ':') return HostProblem{offset + close + 1, "expected ':' and a number of slots after the bracket"};
  return ParseSlots(rest.substr(1), offset + close + 2, line);
}

// HOST, HOST:N, [V6], [V6]:N
absl::optional<HostProblem> ParseHost(absl::string_view word, size_t offset, HostLine* line) {
  if (absl::StartsWith(word, "[")) return ParseBracketed(word, offset, line);
  const size_t colon = word.find(':');
  if (const auto colons = std::count(word.begin(), word.end(), ':'); colons > 1) {
    if (absl::StrContains(word, "::") || colons >= 7) return HostProblem{offset, MissingBrackets(word)};
    return HostProblem{offset + word.find(':', colon + 1),
                       "a second ':'; write HOST:SLOTS, and for a port of ssh \"HOST:SLOTS port=2222\""};
  }
  const absl::string_view name = word.substr(0, colon);
  if (absl::optional<HostProblem> problem = CheckName(name, offset)) return problem;
  line->host.name = std::string(name);
  if (colon == absl::string_view::npos) return absl::nullopt;
  return ParseSlots(word.substr(colon + 1), offset + colon + 1, line);
}

HostProblem NotUnderstood(HostPlace place, size_t word, size_t blank) {
  if (place == HostPlace::kList) return {blank, "a blank inside; hosts are separated by commas"};
  return {word, "not understood; write \"HOST slots=4\", one host per line"};
}

absl::optional<HostProblem> UnknownKey(absl::string_view key, size_t offset) {
  const std::string nearest = NearestWord(key, kKeys);
  return HostProblem{offset, absl::StrCat("a host has no ", Quote(key), "; ",
                                          nearest.empty() ? "" : absl::StrCat("did you mean ", nearest, "? "),
                                          "write \"HOST slots=4 port=2222 user=me\", what is needed of it")};
}

// Reads an item from the left.
class ItemReader {
 public:
  ItemReader(absl::string_view item, HostPlace place, HostLine* line) : item_(item), place_(place), line_(line) {}

  absl::optional<HostProblem> Read() {
    while (at_ < item_.size() && !IsBlank(item_[at_])) ++at_;
    if (absl::optional<HostProblem> problem = ParseHostWord(item_.substr(0, at_), line_)) return problem;
    for (size_t blank = at_; SkipBlanks(); blank = at_) {
      if (absl::optional<HostProblem> problem = ReadPair(blank)) return problem;
    }
    return absl::nullopt;
  }

 private:
  // Whether something comes after them.
  bool SkipBlanks() {
    while (at_ < item_.size() && IsBlank(item_[at_])) ++at_;
    return at_ < item_.size();
  }

  absl::string_view TakeUntil(bool (*ends)(char)) {
    const size_t begin = at_;
    while (at_ < item_.size() && !ends(item_[at_])) ++at_;
    return item_.substr(begin, at_ - begin);
  }

  absl::optional<HostProblem> ReadPair(size_t blank) {
    const size_t key_at = at_;
    const absl::string_view key = TakeUntil([](char c) { return IsBlank(c) || c == '='; });
    if (!SkipBlanks() || item_[at_] != '=') return NotUnderstood(place_, key_at, blank);
    ++at_;
    SkipBlanks();
    const size_t value_at = at_;
    const absl::string_view value = TakeUntil(IsBlank);
    if (key == "slots") return line_->has_slots ? SlotsTwice(key_at) : ParseSlots(value, value_at, line_);
    if (key == "port") return ParsePort(value, value_at, line_);
    if (key == "user") return ParseUser(value, value_at, line_);
    return UnknownKey(key, key_at);
  }

  static absl::optional<HostProblem> SlotsTwice(size_t offset) {
    return HostProblem{offset, "the slots are given twice"};
  }

  const absl::string_view item_;
  const HostPlace place_;
  HostLine* const line_;
  size_t at_ = 0;
};

}  // namespace

absl::optional<HostProblem> ParseHostWord(absl::string_view word, HostLine* line) {
  if (word.empty()) return HostProblem{0, "a host is missing"};
  const size_t at = word.rfind('@');
  if (at == absl::string_view::npos) return ParseHost(word, 0, line);
  if (absl::optional<HostProblem> problem = ParseUser(word.substr(0, at), 0, line)) return problem;
  return ParseHost(word.substr(at + 1), at + 1, line);
}

absl::optional<HostProblem> ParseHostItem(absl::string_view item, HostPlace place, HostLine* line) {
  return ItemReader(item, place, line).Read();
}

}  // namespace farandole
