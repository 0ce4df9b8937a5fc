#include "launcher/cli/networks.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/ip_address.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;

absl::StatusOr<NetworkChoice> Parse(std::vector<std::string> values) {
  std::vector<Setting> settings;
  for (std::string& value : values) settings.push_back({std::move(value), "--network-interface"});
  return ParseNetworkChoice(settings);
}

TEST(Networks, NamesRangesAndHostsAddUp) {
  ASSERT_OK_AND_ASSIGN(const NetworkChoice choice,
                       Parse({"eth0, 10.0.0.0/8", "a=ib0,[::1]=fd00::/8,eth0", "::2 = 10.0.0.5"}));
  const std::vector<NetworkChoice::Rule> expected = {
      {"", "eth0", absl::nullopt},
      {"", "10.0.0.0/8", ParseIpRange("10.0.0.0/8")},
      {"a", "ib0", absl::nullopt},
      {"::1", "fd00::/8", ParseIpRange("fd00::/8")},
      {"::2", "10.0.0.5", ParseIpRange("10.0.0.5")},
  };
  EXPECT_EQ(choice.rules, expected);
  EXPECT_TRUE(Parse({})->empty());
}

TEST(Networks, WhatIsNeitherIsAnErrorWithAHint) {
  const std::pair<std::string, std::string> kCases[] = {
      {"", "\"\": not the name of an interface"},
      {"eth0,", "\"\": not the name of an interface"},
      {"eth 0", "\"eth 0\": not the name of an interface"},
      {"averyverylongname", "\"averyverylongname\": not the name of an interface"},
      {"10.0.0.0/33", "\"10.0.0.0/33\": not a range of addresses"},
      {"=eth0", "\"=eth0\": the host before '=' is missing"},
      {"a=", "\"a=\": not the name of an interface"},
  };
  for (const auto& [value, message] : kCases) {
    EXPECT_THAT(Parse({value}),
                StatusIs(absl::StatusCode::kInvalidArgument, ::testing::StartsWith("--network-interface " + message)))
        << value;
  }
}

}  // namespace
}  // namespace farandole
