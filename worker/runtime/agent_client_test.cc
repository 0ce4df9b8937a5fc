#include "worker/runtime/agent_client.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/testing/status_matchers.h"
#include "worker/runtime/testing/fake_agent.h"

namespace farandole {
namespace {

using ::farandole::testing::FakeAgent;
using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Instant Soon() { return Now() + absl::Seconds(60); }

// What a watch has told.
class Watched {
 public:
  AgentClient::OnAssignment on_assignment() {
    return [this](Assignment assignment) {
      MutexLock lock(&mutex_);
      assignments_.push_back(std::move(assignment));
      changed_.NotifyAll();
    };
  }
  AgentClient::OnLost on_lost() {
    return [this](std::string reason) {
      MutexLock lock(&mutex_);
      losses_.push_back(std::move(reason));
      changed_.NotifyAll();
    };
  }
  std::vector<Assignment> AwaitAssignments(size_t count) {
    MutexLock lock(&mutex_);
    changed_.AwaitUntil(&mutex_, Soon(), [&] { return assignments_.size() >= count; });
    return assignments_;
  }
  std::vector<std::string> AwaitLosses(size_t count) {
    MutexLock lock(&mutex_);
    changed_.AwaitUntil(&mutex_, Soon(), [&] { return losses_.size() >= count; });
    return losses_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Assignment> assignments_;
  std::vector<std::string> losses_;
};

class AgentClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto agent = FakeAgent::Start(2);
    ASSERT_OK(agent);
    agent_ = *std::move(agent);
    for (int i = 0; i < 2; ++i) {
      auto client = AgentClient::Connect(agent_->address(), agent_->workers()[i]);
      ASSERT_OK(client);
      clients_.push_back(*std::move(client));
    }
  }

  std::unique_ptr<FakeAgent> agent_;
  Watched watched_[2];  // outlive the clients
  std::vector<std::unique_ptr<AgentClient>> clients_;
};

TEST_F(AgentClientTest, JoinsAndIsToldItsPlaceInEachGeneration) {
  for (uint64_t generation : {1, 2}) {
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK_AND_ASSIGN(const JoinedJob job, clients_[i]->Join("127.0.0.1:" + std::to_string(10 + i),
                                                                  Generation(generation - 1), Soon()));
      EXPECT_EQ(job.host, "testhost");
      EXPECT_EQ(job.slot, i);
      EXPECT_THAT(job.job_key, SizeIs(32));
      EXPECT_FALSE(job.slab_socket.empty());
      if (generation == 1) clients_[i]->Watch(Generation(0), watched_[i].on_assignment(), watched_[i].on_lost());
    }
    for (int i = 0; i < 2; ++i) {
      const std::vector<Assignment> all = watched_[i].AwaitAssignments(generation);
      ASSERT_THAT(all, SizeIs(generation));
      const Assignment& last = all.back();
      EXPECT_EQ(last.group.generation, Generation(generation));
      EXPECT_EQ(last.group.rank, i);
      ASSERT_EQ(last.group.size(), 2);
      EXPECT_EQ(last.group.members[1].endpoint, "127.0.0.1:11");
      EXPECT_EQ(last.group.members[1].incarnation, agent_->workers()[1]);
      Place place;
      place.rank = place.local_rank = i;
      place.size = place.local_size = 2;
      EXPECT_EQ(last.place, place);
      EXPECT_OK(clients_[i]->Leave(Generation(generation), Soon()));
    }
    EXPECT_TRUE(agent_->AwaitLeft(2, Soon()));
  }
}

TEST_F(AgentClientTest, AnUnknownIncarnationIsNotFound) {
  ASSERT_OK_AND_ASSIGN(const auto client, AgentClient::Connect(agent_->address(), Incarnation(12345)));
  EXPECT_THAT(client->Join("127.0.0.1:1", Generation(0), Soon()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(agent_->address())));
}

TEST_F(AgentClientTest, NobodyListens) {
  EXPECT_THAT(AgentClient::Connect("unix-abstract:farandole-nobody", Incarnation(1)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("farandole-nobody")));
}

TEST_F(AgentClientTest, ReportsArriveAndErrorsAreTold) {
  clients_[0]->Report(Generation(1), "rank 1 was lost");
  // It is there already: a process that ends now has told first.
  EXPECT_THAT(agent_->AwaitReports(1, Now()), ElementsAre("rank 1 was lost"));
  EXPECT_THAT(clients_[0]->Leave(Generation(7), Soon()), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(AgentClientTest, TheLossOfTheAgentIsToldOnceAndCallsFail) {
  clients_[0]->Watch(Generation(0), watched_[0].on_assignment(), watched_[0].on_lost());
  ASSERT_OK(clients_[0]->Join("127.0.0.1:1", Generation(0), Soon()));
  agent_->Die();
  EXPECT_THAT(watched_[0].AwaitLosses(1), ElementsAre(HasSubstr("agent of this host")));
  EXPECT_THAT(clients_[0]->Leave(Generation(1), Soon()), StatusIs(absl::StatusCode::kUnavailable));
  clients_[0]->Report(Generation(1), "nobody hears this");
  clients_[0] = nullptr;
  EXPECT_THAT(watched_[0].AwaitLosses(1), SizeIs(1));
}

TEST_F(AgentClientTest, ItsOwnEndIsNoLoss) {
  clients_[0]->Watch(Generation(0), watched_[0].on_assignment(), watched_[0].on_lost());
  clients_[0] = nullptr;
  EXPECT_THAT(watched_[0].AwaitLosses(0), IsEmpty());
}

}  // namespace
}  // namespace farandole
