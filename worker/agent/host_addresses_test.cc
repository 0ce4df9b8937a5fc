#include "worker/agent/host_addresses.h"

#include <arpa/inet.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace farandole {
namespace {

using ::testing::Contains;

TEST(HostAddresses, HasLoopbackAndOnlySoundOnes) {
  const std::vector<OfferedAddress> all = HostAddresses();
  EXPECT_THAT(all, Contains(OfferedAddress{"lo", "127.0.0.1", 8}));
  for (const OfferedAddress& one : all) {
    unsigned char bytes[sizeof(in6_addr)];
    const bool v4 = ::inet_pton(AF_INET, one.address.c_str(), bytes) == 1;
    EXPECT_TRUE(v4 || ::inet_pton(AF_INET6, one.address.c_str(), bytes) == 1) << one.address;
    EXPECT_LE(one.prefix_length, v4 ? 32 : 128);
    EXPECT_NE(one.address.substr(0, 5), "fe80:");
  }
}

}  // namespace
}  // namespace farandole
