#include "launcher/exec/bootstrap_writer.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/v1/bootstrap.pb.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

AgentStart Start() {
  AgentStart start;
  start.job = "j";
  start.host = "a";
  start.incarnation = Incarnation(9);
  start.job_key = std::string(32, 'k');
  start.local_address = "unix-abstract:x";
  start.credentials = {"CA", "CERTIFICATE", "PRIVATE"};
  return start;
}

v1::AgentBootstrap Parse(const std::string& framed) {
  v1::AgentBootstrap message;
  uint32_t size = 0;
  for (const char byte : framed.substr(0, 4)) size = size << 8 | static_cast<unsigned char>(byte);
  EXPECT_EQ(size, framed.size() - 4);
  EXPECT_TRUE(message.ParseFromString(framed.substr(4)));
  return message;
}

TEST(BootstrapMessage, ForThisMachineHasNoCredentials) {
  const std::string framed = BootstrapMessage(Start(), {{}, "127.0.0.1", absl::Milliseconds(2500), absl::Seconds(3)});
  const v1::AgentBootstrap message = Parse(framed);
  EXPECT_EQ(message.job(), "j");
  EXPECT_EQ(message.host(), "a");
  EXPECT_EQ(message.incarnation(), 9u);
  EXPECT_EQ(message.job_key(), std::string(32, 'k'));
  EXPECT_EQ(message.driver_address(), "unix-abstract:x");
  EXPECT_EQ(message.driver_addresses_size(), 0);
  EXPECT_EQ(message.data_address(), "127.0.0.1");
  EXPECT_EQ(message.grace().seconds(), 2);
  EXPECT_EQ(message.grace().nanos(), 500'000'000);
  EXPECT_FALSE(message.has_lost_after());
  EXPECT_THAT(framed, Not(HasSubstr("PRIVATE")));
}

TEST(BootstrapMessage, ForAnotherHasWhatProvesIt) {
  const v1::AgentBootstrap message =
      Parse(BootstrapMessage(Start(), {{"10.0.0.1:5", "[fd00::1]:5"}, "10.0.0.2", absl::Seconds(5), absl::Seconds(3)}));
  EXPECT_THAT(message.driver_addresses(), ElementsAre("10.0.0.1:5", "[fd00::1]:5"));
  EXPECT_EQ(message.driver_address(), "");
  EXPECT_EQ(message.ca_certificate(), "CA");
  EXPECT_EQ(message.certificate(), "CERTIFICATE");
  EXPECT_EQ(message.private_key(), "PRIVATE");
  EXPECT_EQ(message.lost_after().seconds(), 3);
  EXPECT_FALSE(message.input_may_end());
  BootstrapOptions through_another;
  through_another.input_may_end = true;
  EXPECT_TRUE(Parse(BootstrapMessage(Start(), through_another)).input_may_end());
}

}  // namespace
}  // namespace farandole
