#include "launcher/exec/dial_through.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

class DialThroughTest : public ::testing::Test {
 protected:
  DialThroughTest() {
    start_.open_relay = [this](const std::string& via, const std::string& address, int port, Instant,
                               AgentStart::RelayDone done) {
      asked_ = via + " " + address + " " + std::to_string(port);
      if (answers_) return done(absl::UnavailableError("no route"));
      done_ = std::move(done);
    };
  }
  absl::StatusOr<UniqueFd> Dial(const std::string& address, Instant deadline = Now() + absl::Seconds(30)) {
    return DialThrough(start_, "one", address, 22, deadline, cancellation_);
  }

  AgentStart start_;
  Cancellation cancellation_;
  std::string asked_;
  bool answers_ = true;
  AgentStart::RelayDone done_;
};

TEST_F(DialThroughTest, PassesOnWhatTheDriverSays) {
  EXPECT_THAT(Dial("10.0.0.2"), StatusIs(absl::StatusCode::kUnavailable, "no route"));
  EXPECT_EQ(asked_, "one 10.0.0.2 22");
}

TEST_F(DialThroughTest, AskedForNoAddressThatMeansAnotherMachineThere) {
  for (const char* address : {"127.0.0.1", "127.9.9.9", "::1", "169.254.3.4", "fe80::1", "fe80::1%eth0"}) {
    EXPECT_THAT(Dial(address),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another machine on host one")))
        << address;
  }
  EXPECT_EQ(asked_, "");
}

TEST_F(DialThroughTest, IsCancelledAndLetsGoOfWhatComesLater) {
  answers_ = false;
  cancellation_.Cancel();
  EXPECT_THAT(Dial("fd00::2"), StatusIs(absl::StatusCode::kCancelled, HasSubstr("fd00::2 by way of host one")));
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd ours(ends[0]);
  done_(UniqueFd(ends[1]));
  done_ = nullptr;
  char byte;
  EXPECT_EQ(::recv(ours.get(), &byte, 1, 0), 0) << "it was closed";
}

TEST_F(DialThroughTest, DoesNotWaitForEver) {
  answers_ = false;
  EXPECT_THAT(Dial("10.0.0.2", Now()), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace farandole
