#include "launcher/plan/launch_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LaunchRequest Request(int np, std::vector<HostSpec> hosts) {
  LaunchRequest request;
  request.np = np;
  request.hosts = std::move(hosts);
  request.command = {"t"};
  return request;
}

TEST(LaunchPlan, KeepsHostsInTheirOrderWithTheirSlots) {
  ASSERT_OK_AND_ASSIGN(const DriverConfig config, MakeDriverConfig(Request(2, {{"b", 2}, {"far", 3}, {"::1", 1}})));
  EXPECT_EQ(config.np, 2);
  ASSERT_EQ(config.hosts.size(), 3u);
  EXPECT_EQ(config.hosts[0].name, "b");
  EXPECT_EQ(config.hosts[0].slots, 2);
  EXPECT_EQ(config.hosts[1].name, "far");
  EXPECT_EQ(config.hosts[1].slots, 3);
  EXPECT_EQ(config.hosts[2].name, "::1");
  EXPECT_EQ(config.start_timeout, DriverConfig().start_timeout);
  EXPECT_EQ(config.grace, DriverConfig().grace);
}

TEST(LaunchPlan, TheUsersTimesReachTheDriver) {
  LaunchRequest request = Request(1, {{"a", 1}});
  request.start_timeout = absl::Seconds(90);
  request.grace = absl::Milliseconds(1500);
  ASSERT_OK_AND_ASSIGN(const DriverConfig config, MakeDriverConfig(request));
  EXPECT_EQ(config.start_timeout, absl::Seconds(90));
  EXPECT_EQ(config.grace, absl::Milliseconds(1500));
}

TEST(LaunchPlan, AnElasticJobIsAnErrorThatSaysSo) {
  LaunchRequest request = Request(1, {{"a", 1}});
  request.elastic = ElasticRequest();
  EXPECT_THAT(MakeDriverConfig(request),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("elastic jobs come in a later version")));
}

std::vector<std::string> Warnings(int np, std::vector<HostSpec> hosts, const ResolvedHosts& resolved) {
  const absl::StatusOr<DriverConfig> config = MakeDriverConfig(Request(np, std::move(hosts)));
  return config.ok() ? SameMachineWarnings(*config, resolved) : std::vector<std::string>{config.status().ToString()};
}

TEST(SameMachine, TwoNamesOfOneAreAWarning) {
  const std::vector<HostSpec> kHosts = {{"a", 1}, {"b", 1}, {"c", 1}};
  EXPECT_THAT(
      Warnings(3, kHosts, {{"a", {false, {"10.0.0.1", "fd00::1"}}}, {"b", {false, {"fd00::1"}}}}),
      ElementsAre("hosts a, b are one machine (fd00::1), and each name counts its local ranks from 0: processes "
                  "of both would take the same GPU. Name the machine once, with all its slots, unless its "
                  "processes choose devices in another way"));
  // By a third name that both have something of.
  EXPECT_THAT(
      Warnings(3, kHosts,
               {{"a", {false, {"10.0.0.1"}}}, {"b", {false, {"10.0.0.2"}}}, {"c", {false, {"10.0.0.2", "10.0.0.1"}}}}),
      ElementsAre(HasSubstr("hosts a, b, c are one machine")));
  EXPECT_THAT(Warnings(3, kHosts, {{"a", {true, {"127.0.0.1"}}}, {"c", {true, {"127.0.0.2"}}}}),
              ElementsAre(HasSubstr("hosts a, c are one machine (this machine)")));
}

TEST(SameMachine, WhatIsNotOneOrHasNoWorkersIsNoWarning) {
  const std::vector<HostSpec> kHosts = {{"a", 1}, {"b", 1}};
  EXPECT_THAT(Warnings(2, kHosts, {}), ElementsAre());
  EXPECT_THAT(Warnings(2, kHosts, {{"a", {false, {"10.0.0.1"}}}, {"b", {false, {"10.0.0.2"}}}}), ElementsAre());
  EXPECT_THAT(Warnings(1, kHosts, {{"a", {true, {}}}, {"b", {true, {}}}}), ElementsAre());
  // A name server that gives loopback for a remote name says nothing about it.
  EXPECT_THAT(Warnings(2, kHosts, {{"a", {false, {"127.0.1.1"}}}, {"b", {false, {"127.0.1.1"}}}}), ElementsAre());
}

TEST(UnusedSsh, IsTold) {
  const std::vector<HostSpec> hosts = {{"a", 1, "me"}, {"b", 1, "", 22}, {"c", 1}, {"far", 1, "me"}};
  const ResolvedHosts resolved = {{"a", {true, {}}}, {"b", {true, {}}}, {"c", {true, {}}}};
  EXPECT_THAT(UnusedSshNotes(hosts, resolved),
              ElementsAre("host a is this machine: its processes start without ssh, and the user me is not used",
                          "host b is this machine: its processes start without ssh, and its port is not used"));
}

}  // namespace
}  // namespace farandole
