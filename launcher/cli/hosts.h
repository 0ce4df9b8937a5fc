#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace farandole {

// A host as a person wrote it, how many workers it may have, and how ssh reaches it.
struct HostSpec {
  std::string name;  // of an IPv6 address without its brackets
  int slots = 1;
  std::string user = {};  // empty: as ssh decides
  int ssh_port = 0;       // 0: as ssh decides
  friend bool operator==(const HostSpec&, const HostSpec&) = default;
};

inline constexpr int kMaxSlots = 100'000;

// One grammar for a list of hosts wherever it comes from: -H, a hostfile, what a discovery script prints.
//
//   item       [USER@]HOST[:N] and then, each after a blank, slots=N, port=P (of ssh), user=USER; blanks around '='
//              are fine; each once
//   HOST       a name or an IPv4 address: letters, digits, '_', '.', '-'
//              [v6]: an IPv6 address, always in brackets
//   N          the slots; without it 1
//
// In a list items stand between commas. In a file each has its line; '#' begins a comment; blank lines, blanks around
// words, CRLF and a last line without an end are fine. A host may be named once.
//
// Every error is InvalidArgument and has the source, line and column, the text, what is wrong with it and what to write
// instead.

// `source` names the text in messages ("-H"). At least one host.
absl::StatusOr<std::vector<HostSpec>> ParseHostList(absl::string_view source, absl::string_view text);

// The contents of the hostfile `path`. At least one host.
absl::StatusOr<std::vector<HostSpec>> ParseHostfile(absl::string_view path, absl::string_view text);

// One line of a file.
struct HostLine {
  HostSpec host;
  bool has_slots = false;  // else it got the 1 of those that say nothing
  friend bool operator==(const HostLine&, const HostLine&) = default;
};

// Line `number` (from 1) of `source`, without its end; nothing where there is no host on it. For sources whose lines
// are judged one by one: a host twice is the caller's matter.
absl::StatusOr<absl::optional<HostLine>> ParseHostLine(absl::string_view source, int number, absl::string_view line);

// Whether a word that stands where a program should is more likely a piece of a host list, torn off by a blank:
// "b:1", ",b:1", "b:1,c:2", "me@b:1".
bool LooksLikeHosts(absl::string_view word);

// "localhost:2, [::1]:1, me@a:4 port=2222", for messages; ParseHostList can read it.
std::string DescribeHosts(const std::vector<HostSpec>& hosts);

}  // namespace farandole
