#include "tools/base/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOk;
using ::farandole::testing::IsOkAndHolds;
using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

UniqueFd Accept(const AbstractListener& listener) {
  pollfd waiting{listener.fd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 10'000), 1);
  return UniqueFd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

TEST(UnixSocket, BothEndsKnowEachOther) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    ASSERT_OK_AND_ASSIGN(const AbstractListener listener, ListenAbstract(type));
    ASSERT_OK_AND_ASSIGN(const UniqueFd client, ConnectAbstract(type, listener.name, Now() + absl::Seconds(10)));
    const UniqueFd server = Accept(listener);
    EXPECT_THAT(PeerUser(client.get()), IsOkAndHolds(::geteuid()));
    EXPECT_THAT(PeerUser(server.get()), IsOkAndHolds(::geteuid()));
    EXPECT_OK(CheckPeer(client.get()));
    EXPECT_TRUE(::fcntl(client.get(), F_GETFD) & FD_CLOEXEC);
    ASSERT_EQ(::write(client.get(), "hello", 5), 5);
    char text[5];
    ASSERT_EQ(::read(server.get(), text, 5), 5);
    EXPECT_EQ(std::string(text, 5), "hello");
  }
}

TEST(UnixSocket, OnlyThisUserAndRootMayTalk) {
  EXPECT_TRUE(IsThisUserOrRoot(::geteuid()));
  EXPECT_TRUE(IsThisUserOrRoot(0));
  EXPECT_FALSE(IsThisUserOrRoot(::geteuid() + 1));
}

TEST(UnixSocket, SaysWhereNobodyListens) {
  EXPECT_THAT(ConnectAbstract(SOCK_STREAM, "farandole-nobody", Now() + absl::Seconds(10)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the abstract unix socket farandole-nobody: Connection refused")));
  EXPECT_THAT(ConnectAbstract(SOCK_STREAM, "", Instant::Infinite()), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ConnectAbstract(SOCK_STREAM, std::string(200, 'x'), Instant::Infinite()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 200")));
}

TEST(UnixSocket, AClosedListenerLeavesNothing) {
  std::string name;
  {
    ASSERT_OK_AND_ASSIGN(const AbstractListener listener, ListenAbstract(SOCK_STREAM));
    name = listener.name;
  }
  EXPECT_THAT(ConnectAbstract(SOCK_STREAM, name, Now() + absl::Seconds(10)), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace farandole
