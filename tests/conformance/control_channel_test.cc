// What every ControlChannel promises, over all of them.
#include "collectives/transport/control_channel.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/transport/inproc/inproc_control_channel.h"
#include "collectives/transport/shm/local_slab_source.h"
#include "collectives/transport/shm_control/shm_control_channel.h"
#include "gtest/gtest.h"
#include "tests/conformance/worlds.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

using Event = ControlChannel::Event;
using ::testing::HasSubstr;

class ControlChannelTest : public ::testing::TestWithParam<Means> {
 protected:
  void Make(int size) {
    world_ = MakeWorld(GetParam(), size);
    for (Rank rank = 0; rank < size; ++rank) channels_.push_back(world_->MakeControlChannel(rank));
  }

  void ExpectMessage(ControlChannel& channel, Rank from, const std::string& message) {
    const Event event = channel.Receive(Eventually());
    ASSERT_EQ(event.kind, Event::kMessage) << event.message;
    EXPECT_EQ(event.from, from);
    EXPECT_EQ(event.message, message);
  }

  void ExpectLost(ControlChannel& channel, Rank peer) {
    const Event event = channel.Receive(Eventually());
    ASSERT_EQ(event.kind, Event::kPeerLost);
    EXPECT_EQ(event.from, peer);
    EXPECT_NE(event.message, "") << "it says how";
  }

  std::unique_ptr<World> world_;  // the last to go
  std::vector<std::unique_ptr<ControlChannel>> channels_;
};

TEST_P(ControlChannelTest, MessagesOfOnePeerComeInTheOrderSent) {
  constexpr int kSize = 4;
  constexpr int kMessages = 50;
  world_ = MakeWorld(GetParam(), kSize);
  OnAllRanks(kSize, [&](Rank rank) {
    const auto channel = world_->MakeControlChannel(rank);
    EXPECT_EQ(channel->rank(), rank);
    EXPECT_EQ(channel->size(), kSize);
    auto text = [](Rank from, Rank to, int i) { return absl::StrCat(from, " to ", to, " no ", i); };
    for (int i = 0; i < kMessages; ++i) {
      for (Rank to = 1; rank == 0 && to < kSize; ++to) {
        EXPECT_OK(channel->Send(to, text(0, to, i)));
      }
      if (rank != 0) {
        EXPECT_OK(channel->Send(0, text(rank, 0, i)));
      }
    }
    std::vector<int> next(kSize, 0);
    for (int left = rank == 0 ? kMessages * (kSize - 1) : kMessages; left > 0;) {
      const Event event = channel->Receive(Eventually());
      if (event.kind == Event::kPeerLost) {
        EXPECT_EQ(next[event.from], kMessages) << "a peer that was faster has closed, but its messages come first";
        continue;
      }
      ASSERT_EQ(event.kind, Event::kMessage);
      EXPECT_EQ(event.message, text(event.from, rank, next[event.from]++));
      --left;
    }
    channel->Close(Eventually());
  });
}

TEST_P(ControlChannelTest, EmptyAndLongMessages) {
  Make(2);
  const std::string long_one(5 << 20, 'x');
  EXPECT_OK(channels_[1]->Send(0, ""));
  EXPECT_OK(channels_[1]->Send(0, long_one));
  BlockedThread sender([&] { EXPECT_EQ(channels_[1]->Receive(Eventually()).message, "got it"); });
  ExpectMessage(*channels_[0], 1, "");
  ExpectMessage(*channels_[0], 1, long_one);
  EXPECT_OK(channels_[0]->Send(1, "got it"));
  BlockedThread zero([&] { channels_[0]->Receive(Eventually()); });
  sender.Join();
  channels_[0]->Wake();
}

TEST_P(ControlChannelTest, WhereNoLinkIsNothingIsSent) {
  Make(3);
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(channels_[0]->Send(0, "x"), invalid);
  EXPECT_THAT(channels_[0]->Send(3, "x"), invalid);
  EXPECT_THAT(channels_[0]->Send(-1, "x"), invalid);
  EXPECT_THAT(channels_[1]->Send(2, "x"), invalid);
  EXPECT_THAT(channels_[1]->Send(0, std::string(ControlChannel::kMessageBytesMax + 1, 'x')), invalid);
}

TEST_P(ControlChannelTest, WakeEndsAReceiveBeforeAndWhileItWaits) {
  Make(2);
  for (auto& channel : channels_) {
    channel->Wake();
    channel->Wake();
    EXPECT_EQ(channel->Receive(Eventually()).kind, Event::kWoken);
    EXPECT_EQ(channel->Receive(Now()).kind, Event::kTimeout) << "woken once for two calls before it";
    Event event;
    BlockedThread thread([&] { event = channel->Receive(Instant::Infinite()); });
    thread.AwaitAsleep();
    channel->Wake();
    thread.Join();
    EXPECT_EQ(event.kind, Event::kWoken);
  }
}

TEST_P(ControlChannelTest, ADeadlineIsATimeoutAndNoHarm) {
  Make(2);
  EXPECT_EQ(channels_[0]->Receive(Now() + absl::Milliseconds(2)).kind, Event::kTimeout);
  EXPECT_OK(channels_[1]->Send(0, "late"));
  BlockedThread one([&] { channels_[1]->Receive(Eventually()); });
  ExpectMessage(*channels_[0], 1, "late");
  channels_[1]->Wake();
}

TEST_P(ControlChannelTest, APeerIsLostOnceAndAfterAllItsMessages) {
  Make(3);
  BlockedThread two([&] { channels_[2]->Receive(Eventually()); });
  const std::string long_one(3 << 20, 'y');
  BlockedThread one([&] {
    EXPECT_OK(channels_[1]->Send(0, "first"));
    EXPECT_OK(channels_[1]->Send(0, long_one));
    channels_[1]->Close(Eventually());
  });
  ExpectMessage(*channels_[0], 1, "first");
  ExpectMessage(*channels_[0], 1, long_one);
  ExpectLost(*channels_[0], 1);
  EXPECT_OK(channels_[0]->Send(1, "dropped without a word"));
  EXPECT_EQ(channels_[0]->Receive(Now()).kind, Event::kTimeout) << "lost once only";
  channels_[2]->Wake();
}

TEST_P(ControlChannelTest, AllOthersLoseRankZero) {
  Make(3);
  for (Rank rank : {1, 2}) EXPECT_OK(channels_[rank]->Send(0, "here"));
  std::vector<Event> events(3);
  BlockedThread one([&] { events[1] = channels_[1]->Receive(Eventually()); });
  BlockedThread two([&] { events[2] = channels_[2]->Receive(Eventually()); });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(channels_[0]->Receive(Eventually()).kind, Event::kMessage);
  channels_[0].reset();  // without Close: as a process that ends
  one.Join();
  two.Join();
  for (Rank rank : {1, 2}) {
    EXPECT_EQ(events[rank].kind, Event::kPeerLost);
    EXPECT_EQ(events[rank].from, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, ControlChannelTest, ::testing::ValuesIn(kAllMeans),
                         [](const auto& info) { return Name(info.param); });

// A thread sleeps for the channel while another one uses it.
TEST_P(ControlChannelTest, SharedWaitingEndsForAMessageAWakeAndALoss) {
  Make(2);
  SharedWaiting* const zero = channels_[0]->shared_waiting();
  if (zero == nullptr) return;
  BlockedThread message([&] { zero->Wait(Eventually()); });
  message.AwaitAsleep();
  EXPECT_EQ(channels_[0]->Receive(Instant()).kind, Event::kTimeout) << "Wait holds nothing";
  EXPECT_OK(channels_[1]->Send(0, "hello"));
  message.Join();
  ExpectMessage(*channels_[0], 1, "hello");
  BlockedThread wake([&] { zero->Wait(Eventually()); });
  wake.AwaitAsleep();
  channels_[0]->Wake();
  wake.Join();
  EXPECT_EQ(channels_[0]->Receive(Instant()).kind, Event::kWoken);
  BlockedThread loss([&] { zero->Wait(Eventually()); });
  loss.AwaitAsleep();
  channels_[1].reset();
  loss.Join();
  ExpectLost(*channels_[0], 1);
}

TEST_P(ControlChannelTest, WhoAttendsTakesWhatComesAndTheSleeperIsWokenForTheRest) {
  Make(2);
  SharedWaiting* const zero = channels_[0]->shared_waiting();
  if (zero == nullptr) return;
  for (int round = 0; round < 200; ++round) {
    BlockedThread sleeper([&] { zero->Wait(Eventually()); });
    if (round % 2 == 0) sleeper.AwaitAsleep();
    zero->Attend();
    EXPECT_OK(channels_[1]->Send(0, "for who attends"));
    ExpectMessage(*channels_[0], 1, "for who attends");
    EXPECT_OK(channels_[1]->Send(0, "for the sleeper"));
    zero->Unattend();
    sleeper.Join();
    ExpectMessage(*channels_[0], 1, "for the sleeper");
  }
}

TEST(ShmControlChannelTest, ASentinelSeesWhoHasDied) {
  const auto world = MakeWorld(Means::kTcp, 2);
  LocalSlabSource slabs;
  auto sentinel = world->MakeControlChannel(1);
  ASSERT_OK_AND_ASSIGN(const auto zero,
                       CreateShmControlChannel(world->spec(0), slabs, world->MakeControlChannel(0), Eventually()));
  ASSERT_OK_AND_ASSIGN(const auto one, CreateShmControlChannel(world->spec(1), slabs, nullptr, Eventually()));
  EXPECT_OK(one->Send(0, "last words"));
  EXPECT_EQ(zero->Receive(Eventually()).message, "last words");
  BlockedThread link([&] { sentinel->Receive(Now() + absl::Milliseconds(20)); });  // makes the link
  link.Join();
  sentinel.reset();  // as a process that dies: its sockets are closed, its memory says nothing
  const Event event = zero->Receive(Eventually());
  EXPECT_EQ(event.kind, Event::kPeerLost);
  EXPECT_EQ(event.from, 1);
}

TEST(ControlChannelScriptTest, ACutAtAMessageAndAStall) {
  InprocControlGroup group(2);
  const auto zero = group.Join(0);
  const auto one = group.Join(1);
  group.CutLink(1, 2);
  group.Stall(1);
  for (const char* message : {"a", "b", "c"}) EXPECT_OK(one->Send(0, message));
  EXPECT_EQ(zero->Receive(Now()).kind, Event::kTimeout) << "it stalls";
  group.Resume(1);
  EXPECT_EQ(zero->Receive(Eventually()).message, "a");
  EXPECT_EQ(zero->Receive(Eventually()).message, "b");
  EXPECT_EQ(zero->Receive(Eventually()).kind, Event::kPeerLost);
  EXPECT_EQ(zero->Receive(Now()).kind, Event::kTimeout) << "c came after the cut";
  EXPECT_EQ(one->Receive(Eventually()).kind, Event::kPeerLost);
}

}  // namespace
}  // namespace farandole::testing
