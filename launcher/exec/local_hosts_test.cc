#include "launcher/exec/local_hosts.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

HostAddress LookUp(const std::string& host) {
  const auto found = LookUpHosts({host});
  EXPECT_OK(found.status());
  return found.ok() ? found->at(host) : HostAddress();
}

TEST(LocalHosts, LoopbackInEveryFormIsHereAndKeepsItsAddress) {
  const std::pair<std::string, std::string> kCases[] = {{"localhost", "127.0.0.1"},
                                                        {"127.0.0.1", "127.0.0.1"},
                                                        {"127.0.0.2", "127.0.0.2"},
                                                        {"127.9.8.7", "127.9.8.7"},
                                                        {"::1", "::1"}};
  for (const auto& [host, address] : kCases) {
    const HostAddress found = LookUp(host);
    EXPECT_TRUE(found.local) << host;
    EXPECT_EQ(found.data_address, address) << host;
    EXPECT_THAT(found.addresses, ElementsAre(address)) << host;
  }
}

// 192.0.2.0/24 and 2001:db8::/32 are for documentation: no machine has them.
TEST(LocalHosts, AnAddressOfNoInterfaceIsAnotherMachine) {
  for (const char* host : {"192.0.2.1", "2001:db8::7"}) {
    const HostAddress found = LookUp(host);
    EXPECT_FALSE(found.local) << host;
    EXPECT_THAT(found.addresses, ElementsAre(host));
  }
}

TEST(LocalHosts, ANameThatIsNotKnownIsAnotherMachineWithoutAddresses) {
  const HostAddress found = LookUp("256.256.256.256.invalid");
  EXPECT_FALSE(found.local);
  EXPECT_THAT(found.addresses, IsEmpty());
}

TEST(LocalHosts, ManyAreLookedUpTogether) {
  std::vector<std::string> hosts;
  for (int i = 1; i < 250; ++i) hosts.push_back(absl::StrCat("127.0.0.", i));
  ASSERT_OK_AND_ASSIGN(const auto found, LookUpHosts(hosts));
  ASSERT_EQ(found.size(), hosts.size());
  for (const std::string& host : hosts) EXPECT_EQ(found.at(host).data_address, host);
}

TEST(LocalHosts, TheLoopbackInterfaceHasAName) { EXPECT_NE(LoopbackInterface(), ""); }

}  // namespace
}  // namespace farandole
