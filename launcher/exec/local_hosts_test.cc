#include "launcher/exec/local_hosts.h"

#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

TEST(LocalHosts, LoopbackInEveryFormIsHereAndKeepsItsAddress) {
  const std::pair<std::string, std::string> kCases[] = {{"localhost", "127.0.0.1"},
                                                        {"127.0.0.1", "127.0.0.1"},
                                                        {"127.0.0.2", "127.0.0.2"},
                                                        {"127.9.8.7", "127.9.8.7"},
                                                        {"::1", "::1"}};
  for (const auto& [host, address] : kCases) {
    ASSERT_OK_AND_ASSIGN(const HostAddress found, LookUpHost(host));
    EXPECT_TRUE(found.local) << host;
    EXPECT_EQ(found.data_address, address) << host;
  }
}

// 192.0.2.0/24 and 2001:db8::/32 are for documentation: no machine has them.
TEST(LocalHosts, AnAddressOfNoInterfaceIsAnotherMachine) {
  for (const char* host : {"192.0.2.1", "2001:db8::7"}) {
    ASSERT_OK_AND_ASSIGN(const HostAddress found, LookUpHost(host));
    EXPECT_FALSE(found.local) << host;
  }
}

TEST(LocalHosts, ANameThatIsNoneSaysWhy) {
  EXPECT_THAT(LookUpHost("256.256.256.256.invalid"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the name cannot be looked up: ")));
}

TEST(LocalHosts, TheLoopbackInterfaceHasAName) { EXPECT_NE(LoopbackInterface(), ""); }

}  // namespace
}  // namespace farandole
