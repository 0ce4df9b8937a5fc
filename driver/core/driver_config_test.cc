#include "driver/core/driver_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DriverConfig Good() {
  DriverConfig config;
  config.np = 3;
  config.hosts = {{"a", 2}, {"b", 1}};
  return config;
}

TEST(DriverConfig, DefaultsFitEachOther) { EXPECT_THAT(Good().Validate(), IsEmpty()); }

TEST(DriverConfig, ZeroGraceMeansKillAtOnce) {
  DriverConfig config = Good();
  config.grace = absl::ZeroDuration();
  EXPECT_THAT(config.Validate(), IsEmpty());
}

TEST(DriverConfig, MoreProcessesThanSlotsIsToldWithTheNumbers) {
  DriverConfig config = Good();
  config.np = 4;
  EXPECT_THAT(config.Validate(), ElementsAre("4 processes are more than the 3 slots of all hosts"));
}

TEST(DriverConfig, AllProblemsAreToldAtOnce) {
  DriverConfig config;
  config.np = 0;
  config.hosts = {{"a", 0}, {"a", 1}, {"", 1}};
  config.grace = absl::Seconds(-1);
  config.start_timeout = absl::ZeroDuration();
  config.join_timeout = absl::ZeroDuration();
  config.end_timeout = absl::ZeroDuration();
  config.heartbeat_interval = absl::Seconds(1);
  config.lost_after = absl::Milliseconds(3999);
  EXPECT_THAT(config.Validate(), ElementsAre(HasSubstr("processes is 0"), HasSubstr("host a has 0 slots"),
                                             "host a is listed twice", "a host has no name", HasSubstr("grace is -1s"),
                                             HasSubstr("start_timeout is 0"), HasSubstr("join_timeout is 0"),
                                             HasSubstr("end_timeout is 0"), HasSubstr("lost_after is 3.999s")));
}

TEST(DriverConfig, NoHosts) {
  DriverConfig config;
  EXPECT_THAT(config.Validate(), ElementsAre("no hosts are given", HasSubstr("more than the 0 slots")));
}

}  // namespace
}  // namespace farandole
