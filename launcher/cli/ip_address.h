#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace farandole {

// A numeric address, for computing with: names are never looked up.
struct IpAddress {
  bool v6 = false;
  std::array<uint8_t, 16> bytes = {};  // an IPv4 address is in the first four

  int bits() const { return v6 ? 128 : 32; }

  // The scopes that matter for talking to another machine.
  bool IsLoopback() const;     // 127/8, ::1
  bool IsLinkLocal() const;    // 169.254/16, fe80::/10
  bool IsSiteLocal() const;    // fec0::/10, given up long ago
  bool IsUnspecified() const;  // 0.0.0.0, ::
  bool IsMulticast() const;    // 224/4, ff00::/8

  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

// "10.0.0.1", "fe80::1%eth0", "::ffff:10.0.0.1"; nothing for all else. The scope is left out.
absl::optional<IpAddress> ParseIpAddress(absl::string_view text);

// Addresses that begin with the same bits.
struct IpRange {
  IpAddress first;
  int prefix_length = 0;

  bool Contains(const IpAddress& address) const;
  friend bool operator==(const IpRange&, const IpRange&) = default;
};

// "10.0.0.0/8", "fd00::/8"; an address alone is a range of one.
absl::optional<IpRange> ParseIpRange(absl::string_view text);

}  // namespace farandole
