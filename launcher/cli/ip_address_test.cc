#include "launcher/cli/ip_address.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

std::string Hex(absl::string_view text) {
  const absl::optional<IpAddress> address = ParseIpAddress(text);
  if (!address) return "no address";
  std::string hex;
  for (int i = 0; i < address->bits() / 8; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[address->bytes[i] >> 4];
    hex += kDigits[address->bytes[i] & 15];
  }
  return hex;
}

TEST(IpAddress, EveryUsualForm) {
  EXPECT_EQ(Hex("10.0.200.255"), "0a00c8ff");
  EXPECT_EQ(Hex("::"), "00000000000000000000000000000000");
  EXPECT_EQ(Hex("::1"), "00000000000000000000000000000001");
  EXPECT_EQ(Hex("fd00::"), "fd000000000000000000000000000000");
  EXPECT_EQ(Hex("fe80::1:2%eth0"), "fe800000000000000000000000010002");
  EXPECT_EQ(Hex("1:2:3:4:5:6:7:8"), "00010002000300040005000600070008");
  EXPECT_EQ(Hex("1:2:3:4:5:6:7::"), "00010002000300040005000600070000");
  EXPECT_EQ(Hex("::ffff:10.0.0.1"), "00000000000000000000ffff0a000001");
  EXPECT_EQ(Hex("1:2:3:4:5:6:10.0.0.1"), "0001000200030004000500060a000001");
}

TEST(IpAddress, NothingElse) {
  for (const char* text :
       {"",          "host", "10.0.0",     "10.0.0.0.0",   "10.0.0.256",        "10.0.0.01",         "10.0.0.",
        " 10.0.0.1", "1:2",  ":::",        "::1::",        "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "12345::",
        "g::",       "::1%", "10.0.0.1::", "::10.0.0.1:1", ":1:2:3:4:5:6:7",    "1:2:3:4:5:6:7:"}) {
    EXPECT_EQ(Hex(text), "no address") << text;
  }
}

TEST(IpAddress, Scopes) {
  EXPECT_TRUE(ParseIpAddress("127.3.2.1")->IsLoopback());
  EXPECT_TRUE(ParseIpAddress("::1")->IsLoopback());
  EXPECT_FALSE(ParseIpAddress("128.0.0.1")->IsLoopback());
  EXPECT_FALSE(ParseIpAddress("1::1")->IsLoopback());
  EXPECT_TRUE(ParseIpAddress("169.254.9.9")->IsLinkLocal());
  EXPECT_TRUE(ParseIpAddress("febf::1")->IsLinkLocal());
  EXPECT_FALSE(ParseIpAddress("fec0::1")->IsLinkLocal());
  EXPECT_TRUE(ParseIpAddress("fec0::1")->IsSiteLocal());
  EXPECT_TRUE(ParseIpAddress("0.0.0.0")->IsUnspecified());
  EXPECT_TRUE(ParseIpAddress("::")->IsUnspecified());
  EXPECT_TRUE(ParseIpAddress("224.0.0.1")->IsMulticast());
  EXPECT_TRUE(ParseIpAddress("ff02::1")->IsMulticast());
  EXPECT_FALSE(ParseIpAddress("240.0.0.1")->IsMulticast());
}

TEST(IpRange, ContainsWhatBeginsAlike) {
  struct Case {
    std::string range, inside, outside;
  };
  const Case kCases[] = {
      {"10.0.0.0/8", "10.255.1.2", "11.0.0.0"},
      {"10.1.2.3/8", "10.255.1.2", "9.255.255.255"},
      {"192.168.4.0/22", "192.168.7.255", "192.168.8.0"},
      {"10.0.0.5", "10.0.0.5", "10.0.0.4"},
      {"fd00::/8", "fdff::1", "fe00::1"},
      {"2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"},
      {"0.0.0.0/0", "1.2.3.4", "::1"},
  };
  for (const Case& c : kCases) {
    const absl::optional<IpRange> range = ParseIpRange(c.range);
    ASSERT_TRUE(range.has_value()) << c.range;
    EXPECT_TRUE(range->Contains(*ParseIpAddress(c.inside))) << c.range;
    EXPECT_FALSE(range->Contains(*ParseIpAddress(c.outside))) << c.range;
  }
  for (const char* text :
       {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/-1", "fd00::/129", "eth0", "eth0/8", "/8"}) {
    EXPECT_FALSE(ParseIpRange(text).has_value()) << text;
  }
}

TEST(IpAddress, RandomTextIsNoAddressOrAnAddress) {
  constexpr absl::string_view kLikely = "0123abf:.%/";
  Prng prng(3);
  int parsed = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text(prng.Below(12), ' ');
    for (char& c : text) c = kLikely[prng.Below(kLikely.size())];
    parsed += ParseIpRange(text).has_value();
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace farandole
