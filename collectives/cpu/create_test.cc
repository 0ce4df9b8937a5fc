#include "collectives/cpu/create.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/transport/shm/local_slab_source.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/ids.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

Instant Eventually() { return Now() + absl::Seconds(60); }

class CreateTest : public ::testing::Test {
 protected:
  // A started listener per member, and the group that they make.
  void MakeGroup(std::vector<std::string> hosts) {
    for (size_t i = 0; i < hosts.size(); ++i) {
      TcpListener::Options options;
      options.incarnation = Incarnation(i + 1);
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<TcpListener> listener, TcpListener::Create(options));
      listener->Start("key");
      spec_.members.push_back({hosts[i], options.incarnation, listener->endpoint()});
      listeners_.push_back(std::move(listener));
    }
    spec_.generation = Generation(1);
  }

  GroupSpec Spec(Rank rank) const {
    GroupSpec spec = spec_;
    spec.rank = rank;
    return spec;
  }

  // Sums 1 over all ranks, all with one choice.
  void ExpectSums(TransportChoice choice, SlabSource* slabs) {
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < spec_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        auto communicator = CreateCommunicator(Spec(rank), choice, listeners_[rank].get(), slabs, Eventually());
        ASSERT_OK(communicator);
        int32_t one = 1;
        EXPECT_OK((*communicator)->AllReduce(&one, &one, 1, DType::kInt32, ReduceOp::kSum, Eventually()));
        EXPECT_EQ(one, spec_.size());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  int64_t Links() const {
    int64_t links = 0;
    for (const auto& listener : listeners_) links += listener->stats().delivered;
    return links;
  }

  std::vector<std::unique_ptr<TcpListener>> listeners_;
  GroupSpec spec_;
};

TEST_F(CreateTest, AutoUsesSharedMemoryInsideAHost) {
  MakeGroup({"a", "a", "a"});
  LocalSlabSource slabs;
  ExpectSums(TransportChoice::kAuto, &slabs);
  EXPECT_EQ(Links(), 0);
}

TEST_F(CreateTest, AutoUsesTcpBetweenHostsAndWithoutSharedMemory) {
  MakeGroup({"a", "b"});
  LocalSlabSource slabs;
  ExpectSums(TransportChoice::kAuto, &slabs);
  EXPECT_EQ(Links(), 2);
}

TEST_F(CreateTest, AnExplicitChoiceIsFollowedOrRefused) {
  MakeGroup({"a", "a"});
  LocalSlabSource slabs;
  ExpectSums(TransportChoice::kTcp, &slabs);
  EXPECT_EQ(Links(), 2);
  EXPECT_THAT(CreateCommunicator(Spec(0), TransportChoice::kShm, listeners_[0].get(), nullptr, Eventually()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CreateCommunicator(Spec(0), TransportChoice::kTcp, nullptr, &slabs, Eventually()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("listener")));
  spec_.members[1].host = "b";
  EXPECT_THAT(CreateCommunicator(Spec(0), TransportChoice::kShm, nullptr, &slabs, Eventually()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 1 on host b")));
}

TEST_F(CreateTest, AGroupOfOneNeedsNothingAndCanBeAborted) {
  spec_.members.push_back({"a", Incarnation(1), ""});
  ASSERT_OK_AND_ASSIGN(const auto communicator,
                       CreateCommunicator(Spec(0), TransportChoice::kAuto, nullptr, nullptr, Eventually()));
  const float in = 3;
  float out = 0;
  EXPECT_OK(communicator->AllReduce(&in, &out, 1, DType::kFloat32, ReduceOp::kAverage, Eventually()));
  EXPECT_EQ(out, 3);
  communicator->Abort("over");
  EXPECT_THAT(communicator->Barrier(Eventually()), StatusIs(absl::StatusCode::kCancelled, "over"));
  ASSERT_OK_AND_ASSIGN(const auto channel,
                       CreateControlChannel(Spec(0), TransportChoice::kAuto, nullptr, nullptr, Eventually()));
  channel->Wake();
  EXPECT_EQ(channel->Receive(Eventually()).kind, ControlChannel::Event::kWoken);
  EXPECT_EQ(channel->Receive(Now()).kind, ControlChannel::Event::kTimeout);
  EXPECT_THAT(channel->Send(0, "x"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace farandole
