#include "proto/rpc/relay_pump.h"

#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

// A pump on a loop of its own; the other end of its socket and its call are the test's.
class RelayPumpTest : public ::testing::Test {
 protected:
  struct Piece {
    std::string bytes;
    bool end = false;
  };

  RelayPumpTest() : thread_([this] { loop_.Run(); }) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    peer_.reset(ends[0]);
    loop_.Post([this, end = ends[1]] {
      RelayPump::Call call;
      call.write = [this](std::string bytes, bool end) {
        MutexLock lock(&mutex_);
        EXPECT_FALSE(written_) << "two pieces at a time";
        written_ = {std::move(bytes), end};
        changed_.NotifyAll();
      };
      call.read = [this] {
        MutexLock lock(&mutex_);
        EXPECT_FALSE(asks_) << "asked twice";
        asks_ = true;
        changed_.NotifyAll();
      };
      call.over = [this](bool whole) {
        pump_.reset();
        MutexLock lock(&mutex_);
        over_ = whole;
        changed_.NotifyAll();
      };
      pump_ = std::make_unique<RelayPump>(&loop_, UniqueFd(end), std::move(call));
      pump_->Begin();
    });
  }
  ~RelayPumpTest() override {
    loop_.Post([this] { pump_.reset(); });
    loop_.Stop();
    thread_.join();
  }

  // The next piece for the call; without Confirm() it stays on its way.
  Piece Written() {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(changed_.AwaitUntil(&mutex_, Now() + kPatience,
                                    [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return written_.has_value(); }));
    Piece piece = written_ ? *std::move(written_) : Piece();
    written_.reset();
    return piece;
  }
  void Confirm() {
    loop_.Post([this] { pump_->Written(); });
  }
  bool AwaitAsked() {
    MutexLock lock(&mutex_);
    const bool asked =
        changed_.AwaitUntil(&mutex_, Now() + kPatience, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return asks_; });
    asks_ = false;
    return asked;
  }
  void Give(const std::string& bytes, bool end) {
    EXPECT_TRUE(AwaitAsked());
    loop_.Post([this, bytes, end] { pump_->Received(bytes, end); });
  }
  // Until what the loop has been told so far is done.
  void AwaitLoop() {
    std::promise<void> done;
    loop_.Post([&done] { done.set_value(); });
    done.get_future().wait();
  }
  bool asks() {
    MutexLock lock(&mutex_);
    return asks_;
  }
  // How it was over; empty after too long a time.
  absl::optional<bool> Over() {
    MutexLock lock(&mutex_);
    changed_.AwaitUntil(&mutex_, Now() + kPatience,
                        [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return over_.has_value(); });
    return over_;
  }

  void Write(const std::string& bytes) {
    EXPECT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  std::string Read(size_t count) {
    std::string bytes(count, '\0');
    const ssize_t size = ::recv(peer_.get(), bytes.data(), count, MSG_WAITALL);
    bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return bytes;
  }

  EventLoop loop_;
  UniqueFd peer_;
  std::unique_ptr<RelayPump> pump_;  // the loop's

  Mutex mutex_;
  CondVar changed_;
  absl::optional<Piece> written_ ABSL_GUARDED_BY(mutex_);
  bool asks_ ABSL_GUARDED_BY(mutex_) = false;
  absl::optional<bool> over_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

TEST_F(RelayPumpTest, BytesGoBothWaysUntilBothEnds) {
  Write("up");
  EXPECT_EQ(Written().bytes, "up");
  Give("down", false);
  EXPECT_EQ(Read(4), "down");
  Write("more");  // held until the first is confirmed
  Confirm();
  EXPECT_EQ(Written().bytes, "more");
  Confirm();
  ::shutdown(peer_.get(), SHUT_WR);
  const Piece last = Written();
  EXPECT_TRUE(last.end && last.bytes.empty());
  Confirm();
  Give("late", false);  // the other direction goes on
  Give("last", true);
  EXPECT_EQ(Read(100), "latelast");
  EXPECT_EQ(Over(), true);
}

TEST_F(RelayPumpTest, TheCallMayEndFirst) {
  Give("all", true);
  EXPECT_EQ(Read(100), "all") << "the socket hears of the end";
  Write("still");
  EXPECT_EQ(Written().bytes, "still");
  Confirm();
  ::shutdown(peer_.get(), SHUT_WR);
  EXPECT_TRUE(Written().end);
  Confirm();
  EXPECT_EQ(Over(), true);
}

TEST_F(RelayPumpTest, WhoDoesNotReadIsNotSentMore) {
  const std::string piece(RelayPump::kLongestPiece, 'x');
  size_t sent = 0;
  do {
    Give(piece, false);
    sent += piece.size();
    AwaitLoop();
  } while (asks() && sent < (size_t{64} << 20));
  ASSERT_LT(sent, size_t{64} << 20) << "more than a socket can hold";
  EXPECT_EQ(Read(sent).size(), sent);
  EXPECT_TRUE(AwaitAsked());
}

TEST_F(RelayPumpTest, NobodyAtTheSocketIsTheEnd) {
  peer_.reset();
  EXPECT_TRUE(Written().end);
  Confirm();
  Give("for nobody", false);
  EXPECT_EQ(Over(), false);
}

TEST_F(RelayPumpTest, WhoHasGoneWaitsForTheOtherDirectionNotForEver) {
  Write("bye");
  peer_.reset();
  EXPECT_EQ(Written().bytes, "bye");
  Confirm();
  EXPECT_TRUE(Written().end);
  EXPECT_EQ(Over(), false) << "though nothing came from the call, nor was the end confirmed";
}

TEST_F(RelayPumpTest, WhoHasGoneMayEndInOrder) {
  peer_.reset();
  EXPECT_TRUE(Written().end);
  Confirm();
  Give("", true);
  EXPECT_EQ(Over(), true);
}

TEST_F(RelayPumpTest, ItsEndClosesTheSocket) {
  loop_.Post([this] { pump_.reset(); });
  EXPECT_EQ(Read(1), "");
}

}  // namespace
}  // namespace farandole
