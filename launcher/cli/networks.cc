#include "launcher/cli/networks.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/cli/quote.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr size_t kLongestName = 15;  // of an interface, as Linux has it

bool IsInterfaceName(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text[0] != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isgraph(c) && c != '/' && c != '[' && c != ']'; });
}

absl::string_view WithoutBrackets(absl::string_view host) {
  return absl::StartsWith(host, "[") && absl::EndsWith(host, "]") ? host.substr(1, host.size() - 2) : host;
}

absl::StatusOr<NetworkChoice::Rule> ParseRule(absl::string_view item) {
  NetworkChoice::Rule rule;
  absl::string_view wanted = item;
  if (const size_t equals = item.find('='); equals != absl::string_view::npos) {
    rule.host = std::string(WithoutBrackets(absl::StripAsciiWhitespace(item.substr(0, equals))));
    if (rule.host.empty()) return absl::InvalidArgumentError("the host before '=' is missing");
    wanted = absl::StripAsciiWhitespace(item.substr(equals + 1));
  }
  rule.wanted = std::string(wanted);
  rule.range = ParseIpRange(wanted);
  if (rule.range || IsInterfaceName(wanted)) return rule;
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrContains(wanted, '/') ? "not a range of addresses" : "not the name of an interface",
                   "; write eth0, 10.0.0.0/8, fd00::/8 or HOST=eth0, with commas between"));
}

}  // namespace

absl::StatusOr<NetworkChoice> ParseNetworkChoice(absl::Span<const Setting> settings) {
  NetworkChoice choice;
  for (const Setting& setting : settings) {
    for (absl::string_view item : absl::StrSplit(setting.value, ',')) {
      item = absl::StripAsciiWhitespace(item);
      ASSIGN_OR_RETURN(NetworkChoice::Rule rule, ParseRule(item), std::move(_) << setting.origin << " " << Quote(item));
      if (std::find(choice.rules.begin(), choice.rules.end(), rule) == choice.rules.end()) {
        choice.rules.push_back(std::move(rule));
      }
    }
  }
  return choice;
}

}  // namespace farandole
