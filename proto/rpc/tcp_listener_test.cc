#include "proto/rpc/tcp_listener.h"

#include <arpa/inet.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

int PortOf(const TcpListener& listener) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(listener.endpoint.substr(listener.endpoint.rfind(':') + 1), &port));
  return port;
}

TEST(ListenTcp, ListensWhereItIsToldTo) {
  ASSERT_OK_AND_ASSIGN(const TcpListener v4, ListenTcp("127.0.0.1", 0, 0));
  EXPECT_THAT(v4.endpoint, StartsWith("127.0.0.1:"));
  EXPECT_GT(PortOf(v4), 0);
  ASSERT_OK_AND_ASSIGN(const TcpListener v6, ListenTcp("::1", 0, 0));
  EXPECT_THAT(v6.endpoint, StartsWith("[::1]:"));
}

TEST(ListenTcp, TakesWhatIsFreeInARangeAndNamesItWhenNothingIs) {
  // Three neighbours that were free a moment ago.
  std::vector<TcpListener> taken;
  int first = 0;
  for (int tries = 0; taken.size() < 3 && tries < 100; ++tries) {
    ASSERT_OK_AND_ASSIGN(TcpListener any, ListenTcp("127.0.0.1", 0, 0));
    first = PortOf(any);
    any.fd.reset();
    taken.clear();
    for (int i = 0; i < 3 && first + 2 <= 65535; ++i) {
      absl::StatusOr<TcpListener> one = ListenTcp("127.0.0.1", first, first + 2);
      if (one.ok()) taken.push_back(*std::move(one));
    }
  }
  ASSERT_EQ(taken.size(), 3u);
  std::set<int> ports;
  for (const TcpListener& listener : taken) ports.insert(PortOf(listener));
  EXPECT_EQ(ports, (std::set<int>{first, first + 1, first + 2}));
  EXPECT_THAT(ListenTcp("127.0.0.1", first, first + 2),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(absl::StrCat("127.0.0.1, a port of ", first, " to ", first + 2)),
                             HasSubstr("Address already in use"))));
}

TEST(ListenTcp, SaysWhatItCannotListenOn) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ListenTcp("localhost", 0, 0), StatusIs(kInvalid, HasSubstr("\"localhost\" is no numeric address")));
  EXPECT_THAT(ListenTcp("0.0.0.0", 0, 0), StatusIs(kInvalid, HasSubstr("every address")));
  EXPECT_THAT(ListenTcp("::", 0, 0), StatusIs(kInvalid, HasSubstr("every address")));
  EXPECT_THAT(ListenTcp("127.0.0.1", 5, 4), StatusIs(kInvalid, HasSubstr("ports 5 to 4")));
  // Of a block that is for documentation.
  EXPECT_THAT(ListenTcp("192.0.2.1", 0, 0),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("listening on 192.0.2.1, any port")));
}

TEST(PeerKey, IsTheSameForUsAndForGrpc) {
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(80);
  ::inet_pton(AF_INET, "10.1.2.3", &v4->sin_addr);
  EXPECT_EQ(PeerKey(storage), "10.1.2.3 80");
  EXPECT_EQ(PeerKey("ipv4:10.1.2.3:80"), "10.1.2.3 80");
  storage = {};
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(81);
  ::inet_pton(AF_INET6, "fe80::1", &v6->sin6_addr);
  v6->sin6_scope_id = 2;
  EXPECT_EQ(PeerKey(storage), "fe80::1 81");
  EXPECT_EQ(PeerKey("ipv6:[fe80::1]:81"), "fe80::1 81");
  EXPECT_EQ(PeerKey("ipv6:%5Bfe80::1%252%5D:81"), "fe80::1 81");
  storage = {};
  EXPECT_EQ(PeerKey(storage), "");
  EXPECT_EQ(PeerKey("unix:"), "");
  EXPECT_EQ(PeerKey("ipv4:x"), "");
}

}  // namespace
}  // namespace farandole
