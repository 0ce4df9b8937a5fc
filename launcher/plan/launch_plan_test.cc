#include "launcher/plan/launch_plan.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

LaunchRequest Request(int np, std::vector<HostSpec> hosts) {
  LaunchRequest request;
  request.np = np;
  request.hosts = std::move(hosts);
  request.command = {"t"};
  return request;
}

absl::StatusOr<bool> Lookup(const std::string& host) {
  if (host == "typo") return absl::InvalidArgumentError("the name cannot be looked up: Name or service not known");
  return host != "far";
}

TEST(LaunchPlan, KeepsHostsInTheirOrderWithTheirSlots) {
  ASSERT_OK_AND_ASSIGN(const DriverConfig config,
                       MakeDriverConfig(Request(2, {{"b", 2}, {"a", 3}, {"::1", 1}}), Lookup));
  EXPECT_EQ(config.np, 2);
  ASSERT_EQ(config.hosts.size(), 3u);
  EXPECT_EQ(config.hosts[0].name, "b");
  EXPECT_EQ(config.hosts[0].slots, 2);
  EXPECT_EQ(config.hosts[1].name, "a");
  EXPECT_EQ(config.hosts[1].slots, 3);
  EXPECT_EQ(config.hosts[2].name, "::1");
  EXPECT_EQ(config.start_timeout, DriverConfig().start_timeout);
}

TEST(LaunchPlan, TheUsersStartTimeoutReachesTheDriver) {
  LaunchRequest request = Request(1, {{"a", 1}});
  request.start_timeout = absl::Seconds(90);
  ASSERT_OK_AND_ASSIGN(const DriverConfig config, MakeDriverConfig(request, Lookup));
  EXPECT_EQ(config.start_timeout, absl::Seconds(90));
}

TEST(LaunchPlan, AnotherMachineIsAnErrorThatSaysSo) {
  EXPECT_THAT(
      MakeDriverConfig(Request(2, {{"a", 2}, {"far", 2}}), Lookup),
      StatusIs(absl::StatusCode::kUnimplemented,
               "host far is another machine; this version starts jobs on this one only (agents over ssh come in a "
               "later version). For all processes here: -H localhost:2"));
}

TEST(LaunchPlan, ANameThatIsUnknownIsAnErrorEvenIfItsSlotsAreNotNeeded) {
  EXPECT_THAT(MakeDriverConfig(Request(1, {{"a", 2}, {"typo", 2}}), Lookup),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("host typo: the name cannot be looked up")));
}

}  // namespace
}  // namespace farandole
