#include "launcher/ssh/dial.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/ssh/cancellation.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

Instant Soon() { return Now() + absl::Seconds(30); }

// Bound to a port of IPv4 loopback; listens when told to.
class DialTest : public ::testing::Test {
 protected:
  DialTest() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  void Listen() { EXPECT_EQ(::listen(fd_.get(), 4), 0); }
  absl::StatusOr<UniqueFd> Connect(const std::string& host) {
    return Dial(host, port_, Soon(), cancellation_, [this] { resolved_ = true; });
  }

  UniqueFd fd_;
  int port_ = 0;
  bool resolved_ = false;
  Cancellation cancellation_;
};

TEST_F(DialTest, ConnectsWithKeepAlive) {
  Listen();
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, Connect("127.0.0.1"));
  EXPECT_TRUE(resolved_);
  int on = 0;
  socklen_t size = sizeof on;
  ASSERT_EQ(::getsockopt(stream.get(), SOL_SOCKET, SO_KEEPALIVE, &on, &size), 0);
  EXPECT_EQ(on, 1);
}

TEST_F(DialTest, ANameWithSeveralAddressesTakesTheOneThatAnswers) {
  Listen();
  EXPECT_OK(Connect("localhost"));  // ::1, where nobody listens, may come first
}

TEST_F(DialTest, RefusedIsUnavailableWithTheAddress) {
  EXPECT_THAT(Connect("127.0.0.1"), StatusIs(absl::StatusCode::kUnavailable, "127.0.0.1: Connection refused"));
}

TEST_F(DialTest, AnUnknownNameIsUnavailableWithTheName) {
  EXPECT_THAT(
      Connect("no-such-host.invalid"),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the name no-such-host.invalid cannot be looked up: ")));
  EXPECT_FALSE(resolved_);
}

TEST_F(DialTest, IsCancelledBeforeItIsDone) {
  cancellation_.Cancel();
  EXPECT_THAT(Connect("127.0.0.1"), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace farandole
