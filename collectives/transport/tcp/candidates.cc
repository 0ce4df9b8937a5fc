#include "collectives/transport/tcp/candidates.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace farandole {
namespace {

constexpr size_t kBytesV4 = 4;
constexpr size_t kBytesV6 = 16;

// Bits that two addresses of one family begin with alike.
int BitsInCommon(absl::string_view a, absl::string_view b) {
  int bits = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const uint8_t differ = static_cast<uint8_t>(a[i] ^ b[i]);
    if (differ == 0) {
      bits += 8;
      continue;
    }
    for (uint8_t mask = 0x80; (differ & mask) == 0; mask >>= 1) ++bits;
    break;
  }
  return bits;
}

bool IsLoopback(absl::string_view bits) {
  if (bits.size() == kBytesV4) return bits[0] == 127;
  return bits == absl::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", kBytesV6);
}

bool IsLinkLocal(absl::string_view bits) {
  return bits.size() == kBytesV6 && static_cast<uint8_t>(bits[0]) == 0xfe &&
         (static_cast<uint8_t>(bits[1]) & 0xc0) == 0x80;
}

// Smaller is sooner.
using Rating = std::tuple<bool, bool, bool, bool, int>;

Rating Rate(const Candidate& candidate, absl::Span<const OwnAddress> own, bool same_host) {
  const bool unreadable = candidate.bits.empty();
  bool here = !unreadable && IsLoopback(candidate.bits);
  bool same_subnet = false;
  bool same_family = false;
  int in_common = 0;
  for (const OwnAddress& address : own) {
    if (unreadable || address.bits.size() != candidate.bits.size()) continue;
    same_family = true;
    here = here || address.bits == candidate.bits;
    const int bits = BitsInCommon(address.bits, candidate.bits);
    if (address.prefix < 0) {
      in_common = std::max(in_common, bits);
    } else if (bits >= address.prefix) {
      same_subnet = true;
    }
  }
  return {unreadable, here && !same_host, !same_subnet, !same_family, -in_common};
}

// Where the zone with its '%' begins and ends; nothing when there is none.
std::pair<size_t, size_t> ZoneOf(absl::string_view endpoint) {
  const size_t begin = endpoint.find('%');
  if (begin == absl::string_view::npos) return {endpoint.size(), endpoint.size()};
  return {begin, std::min(endpoint.find(']', begin), endpoint.size())};
}

std::string WithZone(absl::string_view endpoint, absl::string_view zone) {
  std::string bare = WithoutZone(endpoint);
  const size_t bracket = std::min(bare.find(']'), bare.size());
  return bare.insert(bracket, absl::StrCat("%", zone));
}

}  // namespace

std::vector<std::string> SplitEndpoints(absl::string_view endpoints) {
  std::vector<std::string> found;
  for (const absl::string_view endpoint : absl::StrSplit(endpoints, absl::MaxSplits(',', kEndpointsMax))) {
    if (found.size() == kEndpointsMax) break;
    if (!endpoint.empty()) found.emplace_back(endpoint);
  }
  return found;
}

std::string WithoutZone(absl::string_view endpoint) {
  const auto [begin, end] = ZoneOf(endpoint);
  return absl::StrCat(endpoint.substr(0, begin), endpoint.substr(end));
}

std::vector<std::string> OrderCandidates(absl::Span<const Candidate> candidates, absl::Span<const OwnAddress> own,
                                         bool same_host) {
  std::vector<std::pair<Rating, const Candidate*>> rated;
  for (const Candidate& candidate : candidates) rated.emplace_back(Rate(candidate, own, same_host), &candidate);
  std::stable_sort(rated.begin(), rated.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> ordered;
  for (const auto& [rating, candidate] : rated) {
    const size_t before = ordered.size();
    for (const OwnAddress& address : own) {
      if (same_host || address.zone.empty() || !IsLinkLocal(candidate->bits)) continue;
      ordered.push_back(WithZone(candidate->endpoint, address.zone));
    }
    if (ordered.size() == before) ordered.push_back(candidate->endpoint);
  }
  return ordered;
}

}  // namespace farandole
