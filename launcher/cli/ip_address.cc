#include "launcher/cli/ip_address.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace farandole {
namespace {

bool IsDecimal(absl::string_view text, size_t longest) {
  return !text.empty() && text.size() <= longest &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

bool ParseIpv4(absl::string_view text, uint8_t* bytes) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  if (parts.size() != 4) return false;
  for (size_t i = 0; i < 4; ++i) {
    int value = 0;
    // A leading zero means octal to some programs, and decimal to others.
    if (!IsDecimal(parts[i], 3) || (parts[i].size() > 1 && parts[i][0] == '0')) return false;
    if (!absl::SimpleAtoi(parts[i], &value) || value > 255) return false;
    bytes[i] = static_cast<uint8_t>(value);
  }
  return true;
}

bool ParseGroup(absl::string_view text, std::vector<uint8_t>* bytes) {
  uint32_t value = 0;
  const bool hex = !text.empty() && text.size() <= 4 &&
                   std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isxdigit(c); });
  if (!hex || !absl::SimpleHexAtoi(text, &value)) return false;
  bytes->push_back(static_cast<uint8_t>(value >> 8));
  bytes->push_back(static_cast<uint8_t>(value));
  return true;
}

// Groups between colons, the last of which may be an IPv4 address where `may_end_v4`; none if `text` is empty.
bool ParseGroups(absl::string_view text, bool may_end_v4, std::vector<uint8_t>* bytes) {
  if (text.empty()) return true;
  const std::vector<absl::string_view> groups = absl::StrSplit(text, ':');
  for (size_t i = 0; i < groups.size(); ++i) {
    uint8_t v4[4];
    if (i + 1 == groups.size() && may_end_v4 && ParseIpv4(groups[i], v4)) {
      bytes->insert(bytes->end(), v4, v4 + 4);
    } else if (!ParseGroup(groups[i], bytes)) {
      return false;
    }
  }
  return true;
}

absl::optional<IpAddress> ParseIpv6(absl::string_view text) {
  const size_t gap = text.find("::");
  const bool has_gap = gap != absl::string_view::npos;
  std::vector<uint8_t> before, after;
  if (!ParseGroups(text.substr(0, gap), !has_gap, &before)) return absl::nullopt;
  if (has_gap && !ParseGroups(text.substr(gap + 2), true, &after)) return absl::nullopt;
  const size_t given = before.size() + after.size();
  // "::" stands for at least one group.
  if (has_gap ? given > 14 : given != 16) return absl::nullopt;
  IpAddress address;
  address.v6 = true;
  std::copy(before.begin(), before.end(), address.bytes.begin());
  std::copy(after.begin(), after.end(), address.bytes.end() - after.size());
  return address;
}

}  // namespace

bool IpAddress::IsLoopback() const {
  if (!v6) return bytes[0] == 127;
  return bytes[15] == 1 && std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t byte) { return byte == 0; });
}

bool IpAddress::IsLinkLocal() const {
  return v6 ? bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80 : bytes[0] == 169 && bytes[1] == 254;
}

bool IpAddress::IsSiteLocal() const { return v6 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0xc0; }

bool IpAddress::IsUnspecified() const {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

bool IpAddress::IsMulticast() const { return v6 ? bytes[0] == 0xff : (bytes[0] & 0xf0) == 0xe0; }

absl::optional<IpAddress> ParseIpAddress(absl::string_view text) {
  IpAddress address;
  if (ParseIpv4(text, address.bytes.data())) return address;
  const size_t scope = text.find('%');
  if (scope != absl::string_view::npos && scope + 1 == text.size()) return absl::nullopt;
  return ParseIpv6(text.substr(0, scope));
}

bool IpRange::Contains(const IpAddress& address) const {
  if (address.v6 != first.v6) return false;
  for (int bit = 0; bit < prefix_length; bit += 8) {
    const int left = std::min(8, prefix_length - bit);
    const uint8_t mask = static_cast<uint8_t>(0xff << (8 - left));
    if ((address.bytes[bit / 8] & mask) != (first.bytes[bit / 8] & mask)) return false;
  }
  return true;
}

absl::optional<IpRange> ParseIpRange(absl::string_view text) {
  const size_t slash = text.find('/');
  const absl::optional<IpAddress> first = ParseIpAddress(text.substr(0, slash));
  if (!first) return absl::nullopt;
  IpRange range{*first, first->bits()};
  if (slash == absl::string_view::npos) return range;
  const absl::string_view length = text.substr(slash + 1);
  if (!IsDecimal(length, 3) || !absl::SimpleAtoi(length, &range.prefix_length)) return absl::nullopt;
  if (range.prefix_length > first->bits()) return absl::nullopt;
  return range;
}

}  // namespace farandole
