#include "launcher/cli/hosts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "launcher/cli/host_item.h"
#include "launcher/cli/quote.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr char kBlanks[] = " \t\r\v\f";

absl::Status Error(absl::string_view place, size_t column, absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ", column ", column, ": ", Quote(text), ": ", what));
}

absl::Status LineError(absl::string_view source, int number, absl::string_view line, size_t offset,
                       const HostProblem& problem) {
  return Error(absl::StrCat(source, ", line ", number), offset + problem.offset + 1,
               absl::StripTrailingAsciiWhitespace(line), problem.what);
}

// Adds `host`, or says where its name was before.
absl::optional<HostProblem> Add(HostSpec host, std::string place, std::map<std::string, std::string>* places,
                                std::vector<HostSpec>* hosts) {
  const auto [before, added] = places->emplace(host.name, std::move(place));
  if (!added) {
    return HostProblem{
        0, absl::StrCat("the host was named before (", before->second, "); name it once, with all its slots")};
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
  RETURN_IF_ERROR(ForEachPiece(text, ',', [&](absl::string_view item, size_t offset) {
    offset += Trim(&item);
    HostLine line;
    absl::optional<HostProblem> problem = ParseHostItem(item, HostPlace::kList, &line);
    if (!problem) problem = Add(std::move(line.host), absl::StrCat("column ", offset + 1), &places, &hosts);
    if (!problem) return absl::OkStatus();
    return Error(source, offset + problem->offset + 1, item.empty() ? text : item, problem->what);
  }));
  return hosts;
}

absl::StatusOr<absl::optional<HostLine>> ParseHostLine(absl::string_view source, int number, absl::string_view line) {
  absl::string_view rest = line.substr(0, line.find('#'));
  const size_t offset = Trim(&rest);
  if (rest.empty()) return absl::optional<HostLine>();
  HostLine parsed;
  const absl::optional<HostProblem> problem = ParseHostItem(rest, HostPlace::kLine, &parsed);
  if (problem) return LineError(source, number, line, offset, *problem);
  return absl::optional<HostLine>(std::move(parsed));
}

absl::StatusOr<std::vector<HostSpec>> ParseHostfile(absl::string_view path, absl::string_view text) {
  std::vector<HostSpec> hosts;
  std::map<std::string, std::string> places;
  int number = 0;
  RETURN_IF_ERROR(ForEachPiece(text, '\n', [&](absl::string_view line, size_t) -> absl::Status {
    ++number;
    ASSIGN_OR_RETURN(absl::optional<HostLine> parsed, ParseHostLine(path, number, line));
    if (!parsed) return absl::OkStatus();
    const auto problem = Add(std::move(parsed->host), absl::StrCat("line ", number), &places, &hosts);
    if (!problem) return absl::OkStatus();
    return LineError(path, number, line, line.find_first_not_of(kBlanks), *problem);
  }));
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
    HostLine line;
    if (ParseHostWord(item, &line)) return absl::InvalidArgumentError("");
    any_slots |= line.has_slots;
    return absl::OkStatus();
  });
  return status.ok() && any_slots;
}

std::string DescribeHosts(const std::vector<HostSpec>& hosts) {
  return absl::StrJoin(hosts, ", ", [](std::string* out, const HostSpec& host) {
    const bool v6 = absl::StrContains(host.name, ':');
    if (!host.user.empty()) absl::StrAppend(out, host.user, "@");
    absl::StrAppend(out, v6 ? "[" : "", host.name, v6 ? "]" : "", ":", host.slots);
    if (host.ssh_port != 0) absl::StrAppend(out, " port=", host.ssh_port);
  });
}

}  // namespace farandole
