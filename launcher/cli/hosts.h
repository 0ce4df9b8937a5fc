#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace farandole {

// A host as a person wrote it, and how many workers it may have.
struct HostSpec {
  std::string name;  // of an IPv6 address without its brackets
  int slots = 1;
  friend bool operator==(const HostSpec&, const HostSpec&) = default;
};

inline constexpr int kMaxSlots = 100'000;

// One grammar for a list of hosts wherever it comes from.
//
//   host       a name or an IPv4 address: letters, digits, '_', '.', '-'
//   [v6]       an IPv6 address, always in brackets
//   ...:N      with N slots; without it 1
//
// A host may be named once. Every error is InvalidArgument and has the source, line and column, the text, what is wrong
// with it and what to write instead.

// Items between commas, blanks around them allowed. `source` names the text in messages ("-H"). At least one host.
absl::StatusOr<std::vector<HostSpec>> ParseHostList(absl::string_view source, absl::string_view text);

// The contents of the hostfile `path`: a host per line, also as "host slots=N". '#' begins a comment; blank lines,
// blanks around words and CRLF are fine. At least one host.
absl::StatusOr<std::vector<HostSpec>> ParseHostfile(absl::string_view path, absl::string_view text);

// Whether a word that stands where a program should is more likely a piece of a host list, torn off by a blank:
// "b:1", ",b:1", "b:1,c:2".
bool LooksLikeHosts(absl::string_view word);

// "localhost:2, [::1]:1", for messages.
std::string DescribeHosts(const std::vector<HostSpec>& hosts);

}  // namespace farandole
