#include "collectives/transport/tcp/listen_sockets.h"

#include <poll.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/transport/tcp/candidates.h"
#include "collectives/transport/tcp/socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

int PortOf(absl::string_view endpoint) { return std::stoi(std::string(endpoint.substr(endpoint.rfind(':') + 1))); }

// A port that is free on all of `addresses`, by the system's choice; it stays taken on the first of them.
struct TakenPort {
  UniqueFd fd;
  int port = 0;
};
absl::StatusOr<TakenPort> TakePort(const std::string& address) {
  auto sockets = ListenOnAll({address}, PortRange());
  if (!sockets.ok()) return sockets.status();
  return TakenPort{std::move(sockets->front().fd), PortOf(sockets->front().endpoint)};
}

bool Accepts(const ListenSocket& socket) {
  const auto fd = BeginConnect(socket.endpoint);
  if (!fd.ok()) return false;
  pollfd wait{socket.fd.get(), POLLIN, 0};
  return ::poll(&wait, 1, 10'000) == 1;
}

TEST(ListenOnAll, OneSocketForEachAddressAndForNoOther) {
  ASSERT_OK_AND_ASSIGN(const auto sockets, ListenOnAll({"127.0.0.1", "127.0.0.2", "::1"}, PortRange()));
  ASSERT_THAT(sockets, SizeIs(3));
  EXPECT_THAT(sockets[0].endpoint, StartsWith("127.0.0.1:"));
  EXPECT_THAT(sockets[1].endpoint, StartsWith("127.0.0.2:"));
  EXPECT_THAT(sockets[2].endpoint, StartsWith("[::1]:"));
  for (const ListenSocket& socket : sockets) EXPECT_TRUE(Accepts(socket)) << socket.endpoint;
  ASSERT_OK_AND_ASSIGN(const UniqueFd elsewhere, BeginConnect(absl::StrCat("127.0.0.3:", PortOf(sockets[0].endpoint))));
  pollfd wait{elsewhere.get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&wait, 1, 10'000), 1);
  const iovec piece{const_cast<char*>("x"), 1};
  EXPECT_THAT(SendSome(elsewhere.get(), absl::MakeConstSpan(&piece, 1)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("refused")));
}

TEST(ListenOnAll, KnowsTheNetworkOfAnAddress) {
  ASSERT_OK_AND_ASSIGN(const auto sockets, ListenOnAll({"127.0.0.1", "127.0.0.2", "::1"}, PortRange()));
  EXPECT_EQ(sockets[0].address.bits, std::string("\x7f\0\0\1", 4));
  EXPECT_EQ(sockets[0].address.prefix, 8);
  EXPECT_EQ(sockets[1].address.prefix, -1) << "no interface has it by name";
  EXPECT_EQ(sockets[2].address.prefix, 128);
  EXPECT_EQ(sockets[2].address.zone, "");
}

TEST(ListenOnAll, AnAddressThatIsNamedTwiceIsTakenOnce) {
  ASSERT_OK_AND_ASSIGN(const auto sockets, ListenOnAll({"127.0.0.1", "127.0.0.1", "::1", "0::1"}, PortRange()));
  EXPECT_THAT(sockets, SizeIs(2));
}

TEST(ListenOnAll, StaysInsideTheRangeAndPassesOverPortsInUse) {
  ASSERT_OK_AND_ASSIGN(const TakenPort taken, TakePort("127.0.0.1"));
  const PortRange range{taken.port, std::min(taken.port + 200, 65535)};
  ASSERT_OK_AND_ASSIGN(const auto sockets, ListenOnAll({"127.0.0.1"}, range));
  EXPECT_GT(PortOf(sockets[0].endpoint), range.first);
  EXPECT_LE(PortOf(sockets[0].endpoint), range.last);
}

TEST(ListenOnAll, ARangeThatIsUsedUpIsAnErrorWithAddressAndRange) {
  ASSERT_OK_AND_ASSIGN(const TakenPort taken, TakePort("127.0.0.1"));
  EXPECT_THAT(ListenOnAll({"127.0.0.1"}, {taken.port, taken.port}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("127.0.0.1"), HasSubstr(absl::StrCat(taken.port, "-", taken.port)),
                             HasSubstr("in use"))));
}

TEST(ListenOnAll, WhatCannotBeListenedOnIsLeftOutUnlessNothingIsLeft) {
  ASSERT_OK_AND_ASSIGN(const auto sockets, ListenOnAll({"192.0.2.77", "127.0.0.1"}, PortRange()));
  ASSERT_THAT(sockets, SizeIs(1));
  EXPECT_THAT(sockets[0].endpoint, StartsWith("127.0.0.1:"));
  EXPECT_THAT(ListenOnAll({"192.0.2.77", "192.0.2.78"}, PortRange()).status().message(),
              AllOf(HasSubstr("192.0.2.77"), HasSubstr("192.0.2.78"), HasSubstr("assign")));
}

TEST(ListenOnAll, OfTooManyAddressesTheFirstAreTaken) {
  std::vector<std::string> many;
  for (int i = 1; i <= kEndpointsMax + 5; ++i) many.push_back(absl::StrCat("127.0.0.", i));
  ASSERT_OK_AND_ASSIGN(const auto sockets, ListenOnAll(many, PortRange()));
  ASSERT_THAT(sockets, SizeIs(kEndpointsMax));
  EXPECT_THAT(sockets.back().endpoint, StartsWith(absl::StrCat(many[kEndpointsMax - 1], ":")));
}

TEST(ListenOnAll, RefusesWhatIsNoAddressToConnectTo) {
  for (const std::string wrong :
       {"", "localhost", "[::1]", "127.0.0.1:80", "0.0.0.0", "::", "fe80::1%no-such-interface"}) {
    EXPECT_THAT(ListenOnAll({wrong}, PortRange()), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(wrong)));
  }
  EXPECT_THAT(ListenOnAll({}, PortRange()), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace farandole
