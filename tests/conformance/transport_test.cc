// What every Transport promises, over all of them.
#include "collectives/transport/transport.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/conformance/worlds.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

// Bytes that tell who sent them to whom.
Bytes Pattern(Rank from, Rank to, size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251 + from * 7 + to * 13);
  return bytes;
}

class TransportTest : public ::testing::TestWithParam<Means> {
 protected:
  // Two ranks, for tests that drive both from one thread.
  void MakePair() {
    zero_.reset();
    one_.reset();
    world_ = MakeWorld(GetParam(), 2);
    zero_ = world_->MakeTransport(0);
    one_ = world_->MakeTransport(1);
  }

  absl::Status Send(Transport& from, absl::Span<const std::byte> bytes, uint64_t operation = 1,
                    Instant deadline = Eventually()) {
    return from.SendRecv(operation, 1 - from.rank(), bytes, from.rank(), {}, deadline);
  }
  absl::Status Receive(Transport& at, absl::Span<std::byte> bytes, uint64_t operation = 1,
                       Instant deadline = Eventually()) {
    return at.SendRecv(operation, at.rank(), {}, 1 - at.rank(), bytes, deadline);
  }

  std::unique_ptr<World> world_;  // the first to be made, the last to go
  std::unique_ptr<Transport> zero_;
  std::unique_ptr<Transport> one_;
};

TEST_P(TransportTest, KnowsItsPlace) {
  MakePair();
  EXPECT_EQ(one_->rank(), 1);
  EXPECT_EQ(one_->size(), 2);
}

TEST_P(TransportTest, EveryPairExchangesMessagesOfEveryLength) {
  constexpr size_t kLengths[] = {1, 3, 16, 4096, 100'001};
  for (int size : {2, 3, 5}) {
    const auto world = MakeWorld(GetParam(), size);
    OnAllRanks(size, [&](Rank rank) {
      const auto transport = world->MakeTransport(rank);
      uint64_t operation = 0;
      for (size_t length : kLengths) {
        for (int distance = 1; distance < size; ++distance) {
          const Rank to = (rank + distance) % size;
          const Rank from = (rank - distance + size) % size;
          Bytes in(length);
          const Bytes out = Pattern(rank, to, length);
          EXPECT_OK(transport->SendRecv(++operation, to, out, from, absl::MakeSpan(in), Eventually()));
          EXPECT_EQ(in, Pattern(from, rank, length));
        }
      }
      EXPECT_OK(transport->SendRecv(1'000'000, rank, {}, rank, {}, Eventually())) << "nothing to do is no error";
    });
  }
}

TEST_P(TransportTest, ARingInWhichAllSendFirstDoesNotLockUp) {
  constexpr int kSize = 3;
  constexpr size_t kLength = 8 << 20;  // more than any buffer on the way holds
  const auto world = MakeWorld(GetParam(), kSize);
  OnAllRanks(kSize, [&](Rank rank) {
    const auto transport = world->MakeTransport(rank);
    const Rank to = (rank + 1) % kSize;
    const Rank from = (rank + kSize - 1) % kSize;
    Bytes in(kLength);
    EXPECT_OK(transport->SendRecv(1, to, Pattern(rank, to, kLength), from, absl::MakeSpan(in), Eventually()));
    EXPECT_EQ(in, Pattern(from, rank, kLength));
  });
}

TEST_P(TransportTest, BothDirectionsMayDifferInLengthAndAMessageWaitsForItsReceiver) {
  MakePair();
  const Bytes small = Pattern(0, 1, 10);
  const Bytes other = Pattern(0, 1, 999);
  EXPECT_OK(Send(*zero_, small));
  EXPECT_OK(Send(*zero_, other));
  Bytes in(10);
  EXPECT_OK(Receive(*one_, absl::MakeSpan(in)));
  EXPECT_EQ(in, small);
  in.resize(999);
  const Bytes back = Pattern(1, 0, 3);
  EXPECT_OK(one_->SendRecv(1, 0, back, 0, absl::MakeSpan(in), Eventually()));
  EXPECT_EQ(in, other);
  in.resize(3);
  EXPECT_OK(Receive(*zero_, absl::MakeSpan(in)));
  EXPECT_EQ(in, back);
}

TEST_P(TransportTest, BytesOfAnotherOperationAreAnErrorThatFinishes) {
  MakePair();
  Bytes in(4);
  EXPECT_OK(Send(*zero_, Pattern(0, 1, 4), 6));
  EXPECT_THAT(Receive(*one_, absl::MakeSpan(in), 7),
              StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr(Describe(world_->spec(1), 0)),
                                                          HasSubstr("operation 6"), HasSubstr("operation 7"))));
  EXPECT_THAT(Receive(*one_, absl::MakeSpan(in), 7),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("operation 6")));
}

TEST_P(TransportTest, AnotherLengthIsAnError) {
  for (size_t expected : {3, 5}) {
    MakePair();
    Bytes in(expected);
    EXPECT_OK(Send(*zero_, Pattern(0, 1, 4)));
    EXPECT_THAT(Receive(*one_, absl::MakeSpan(in)), StatusIs(absl::StatusCode::kInternal, HasSubstr("4 bytes")));
  }
}

TEST_P(TransportTest, WrongPeersAreRefusedAndDoNoHarm) {
  MakePair();
  Bytes one(1);
  for (Rank wrong : {-1, 0, 2}) {
    EXPECT_THAT(zero_->SendRecv(1, wrong, one, 0, {}, Eventually()), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(zero_->SendRecv(1, 0, {}, wrong, absl::MakeSpan(one), Eventually()),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_OK(Send(*zero_, one));
  EXPECT_OK(Receive(*one_, absl::MakeSpan(one)));
}

TEST_P(TransportTest, ADeadlineNamesWhomItWaitedForAndFinishes) {
  MakePair();
  Bytes in(1);
  EXPECT_THAT(Receive(*zero_, absl::MakeSpan(in), 1, Now() + absl::Milliseconds(2)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(Describe(world_->spec(0), 1))));
  EXPECT_THAT(Receive(*zero_, absl::MakeSpan(in)), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(TransportTest, ADeadlineThatHasPassedDoesNotHinderWhatIsThere) {
  MakePair();
  Bytes in(1);
  EXPECT_OK(Send(*zero_, in));
  EXPECT_OK(Receive(*one_, absl::MakeSpan(in)));
  EXPECT_OK(Send(*zero_, in, 1, Now()));
  EXPECT_OK(Receive(*one_, absl::MakeSpan(in)));
}

TEST_P(TransportTest, AbortEndsABlockedReceivePromptly) {
  MakePair();
  absl::Status status;
  BlockedThread thread([&] {
    Bytes in(1);
    status = Receive(*zero_, absl::MakeSpan(in), 1, Instant::Infinite());
  });
  thread.AwaitAsleep();
  zero_->Abort("generation 2");
  zero_->Abort("generation 3");
  thread.Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, "generation 2"));
  EXPECT_THAT(Send(*zero_, Pattern(0, 1, 1)), StatusIs(absl::StatusCode::kCancelled, "generation 2"));
}

TEST_P(TransportTest, AbortEndsABlockedSendPromptly) {
  MakePair();
  absl::Status status;
  BlockedThread thread([&] {
    const Bytes out(1 << 20);
    for (int i = 0; status.ok() && i < 64; ++i) status = Send(*zero_, out, 1, Instant::Infinite());
  });
  thread.AwaitAsleep();
  zero_->Abort("stop");
  thread.Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, "stop"));
}

TEST_P(TransportTest, AbortBeforeTheFirstCallIsReportedByIt) {
  MakePair();
  zero_->Abort("never begun");
  EXPECT_THAT(zero_->SendRecv(1, 0, {}, 0, {}, Eventually()), StatusIs(absl::StatusCode::kCancelled, "never begun"));
}

TEST_P(TransportTest, APeerThatLeavesIsNamedAfterWhatItSentIsReceived) {
  MakePair();
  Bytes in(100);
  EXPECT_OK(Send(*one_, Pattern(1, 0, 100)));
  one_.reset();
  EXPECT_OK(Receive(*zero_, absl::MakeSpan(in)));
  EXPECT_EQ(in, Pattern(1, 0, 100));
  EXPECT_THAT(Receive(*zero_, absl::MakeSpan(in)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(Describe(world_->spec(0), 1))));
  EXPECT_THAT(Receive(*zero_, absl::MakeSpan(in)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(Describe(world_->spec(0), 1))));
}

TEST_P(TransportTest, APeerThatLeavesEndsABlockedReceiveAndABlockedSend) {
  for (const bool sends : {false, true}) {
    MakePair();
    Bytes byte(1);
    EXPECT_OK(Send(*one_, byte));  // so that there is a link that can end
    EXPECT_OK(Receive(*zero_, absl::MakeSpan(byte)));
    EXPECT_OK(Send(*zero_, byte));
    EXPECT_OK(Receive(*one_, absl::MakeSpan(byte)));
    absl::Status status;
    BlockedThread thread([&] {
      Bytes bytes(1 << 20);
      for (int i = 0; status.ok() && i < 64; ++i) {
        status = sends ? Send(*zero_, bytes) : Receive(*zero_, absl::MakeSpan(bytes));
      }
    });
    thread.AwaitAsleep();
    one_.reset();
    thread.Join();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr(Describe(world_->spec(0), 1))));
  }
}

INSTANTIATE_TEST_SUITE_P(, TransportTest, ::testing::ValuesIn(kAllMeans),
                         [](const auto& info) { return Name(info.param); });

}  // namespace
}  // namespace farandole::testing
