// Several workers as threads of one process, with a fake agent. Workers as processes: worker/capi/job_test.
#include "worker/runtime/worker_runtime.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "worker/runtime/testing/fake_agent.h"

namespace farandole {
namespace {

using ::farandole::testing::FakeAgent;
using ::farandole::testing::StatusIs;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Instant Soon() { return Now() + absl::Seconds(60); }

std::unique_ptr<WorkerRuntime> MakeWorker(Variables variables) {
  return std::make_unique<WorkerRuntime>([variables = std::move(variables)](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

absl::Status Sum(WorkerRuntime* worker, const std::string& name, float* value) {
  Request request;
  request.name = name;
  request.shape = {1};
  request.input = request.output = value;
  auto handles = worker->Enqueue({request}, 0);
  if (!handles.ok()) return handles.status();
  absl::Status status = worker->handles().Wait(handles->at(0), Soon());
  EXPECT_OK(worker->handles().Release(handles->at(0)));
  return status;
}

TEST(WorkerAlone, IsAGroupOfOneAndComesBack) {
  auto worker = MakeWorker({});
  EXPECT_FALSE(worker->place().has_value());
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(worker->Init(Soon()));
    EXPECT_OK(worker->Init(Soon()));
    EXPECT_EQ(worker->place(), Place());
    float value = 3;
    EXPECT_OK(Sum(worker.get(), "x", &value));
    EXPECT_EQ(value, 3);
    worker->Shutdown();
    EXPECT_FALSE(worker->place().has_value());
    EXPECT_THAT(Sum(worker.get(), "x", &value), StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

TEST(WorkerAlone, SaysHowToStartWhenAForeignLauncherStartedIt) {
  auto worker = MakeWorker({{"OMPI_COMM_WORLD_SIZE", "4"}});
  ::testing::internal::CaptureStderr();
  EXPECT_OK(worker->Init(Soon()));
  worker->Shutdown();
  EXPECT_OK(worker->Init(Soon()));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("farandole run -np"));
  EXPECT_EQ(said.find("farandole run"), said.rfind("farandole run")) << "said twice: " << said;
}

TEST(WorkerOfAJob, SaysWhereItCannotListen) {
  auto worker = MakeWorker({{"FARANDOLE_AGENT", "unix-abstract:farandole-test-nobody"},
                            {"FARANDOLE_WORKER", "00000000000000ff"},
                            {"FARANDOLE_DATA_ADDRESS", "192.0.2.77"},
                            {"FARANDOLE_PORT_RANGE", "4000-4001"}});
  const absl::Status status = worker->Init(Soon());
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("192.0.2.77"));
}

class WorkersTest : public ::testing::TestWithParam<const char*> {
 protected:
  void Start(int size) {
    auto agent = FakeAgent::Start(size);
    ASSERT_OK(agent);
    agent_ = *std::move(agent);
    for (const Incarnation incarnation : agent_->workers()) {
      workers_.push_back(MakeWorker({{"FARANDOLE_AGENT", agent_->address()},
                                     {"FARANDOLE_WORKER", absl::StrFormat("%016x", incarnation.value())},
                                     {"FARANDOLE_DATA_ADDRESS", "127.0.0.1,127.0.0.2"},
                                     {"FARANDOLE_TRANSPORT", GetParam()}}));
    }
  }

  // Runs `work` on all workers at once; returns what each gave.
  std::vector<absl::Status> OnAll(const std::function<absl::Status(WorkerRuntime*)>& work) {
    std::vector<absl::Status> statuses(workers_.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] { statuses[i] = work(workers_[i].get()); });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  absl::Status InitAll() {
    for (const absl::Status& status : OnAll([](WorkerRuntime* worker) { return worker->Init(Soon()); })) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  std::unique_ptr<FakeAgent> agent_;
  std::vector<std::unique_ptr<WorkerRuntime>> workers_;
};

INSTANTIATE_TEST_SUITE_P(Transports, WorkersTest, ::testing::Values("auto", "shm", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(WorkersTest, JoinReduceLeaveAndComeBack) {
  Start(3);
  for (int generation = 1; generation <= 2; ++generation) {
    ASSERT_OK(InitAll());
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(workers_[rank]->place().has_value());
      EXPECT_EQ(workers_[rank]->place()->rank, rank);
      EXPECT_EQ(workers_[rank]->place()->size, 3);
    }
    EXPECT_THAT(OnAll([](WorkerRuntime* worker) {
                  float value = 1;
                  absl::Status status = Sum(worker, "x", &value);
                  EXPECT_EQ(value, 3);
                  return status;
                }),
                Each(absl::OkStatus()));
    OnAll([](WorkerRuntime* worker) {
      worker->Shutdown();
      return absl::OkStatus();
    });
    EXPECT_TRUE(agent_->AwaitLeft(3, Soon()));
  }
}

TEST_P(WorkersTest, InitGivesUpAndGoesOn) {
  Start(2);
  EXPECT_THAT(workers_[0]->Init(Now()), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("testhost/0")));
  EXPECT_FALSE(workers_[0]->place().has_value());
  EXPECT_THAT(workers_[0]->Init(Now()), StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_OK(InitAll());
  EXPECT_EQ(workers_[0]->place()->rank, 0);
}

TEST_P(WorkersTest, ShutdownEndsAnInitThatWaits) {
  Start(2);
  absl::Status waited;
  std::thread waiter([&] { waited = workers_[0]->Init(Instant::Infinite()); });
  ASSERT_TRUE(agent_->AwaitJoined(1, Soon()));
  workers_[0]->Shutdown();
  waiter.join();
  EXPECT_THAT(waited, StatusIs(absl::StatusCode::kAborted));
}

TEST_P(WorkersTest, ALostAgentFailsWhatRunsAndEveryLaterInit) {
  Start(2);
  ASSERT_OK(InitAll());
  float value = 1;
  Request request;
  request.name = "never";
  request.shape = {1};
  request.input = request.output = &value;
  ASSERT_OK_AND_ASSIGN(const std::vector<Handle> handles, workers_[0]->Enqueue({request}, 0));
  agent_->Die();
  // It is the other worker's agent too, which may hear of it first and go: what is lost then is the other worker.
  EXPECT_THAT(workers_[0]->handles().Wait(handles[0], Soon()),
              StatusIs(absl::StatusCode::kUnavailable,
                       AnyOf(HasSubstr("agent of this host"), HasSubstr("rank 1 on host testhost was lost"))));
  EXPECT_TRUE(workers_[0]->place().has_value());
  workers_[0]->Shutdown();
  EXPECT_THAT(workers_[0]->Init(Soon()), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("agent of this host")));
}

TEST_P(WorkersTest, ALostAgentEndsAnInitThatWaits) {
  Start(2);
  absl::Status waited;
  std::thread waiter([&] { waited = workers_[0]->Init(Instant::Infinite()); });
  ASSERT_TRUE(agent_->AwaitJoined(1, Soon()));
  agent_->Die();
  waiter.join();
  EXPECT_THAT(waited, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("agent of this host")));
}

TEST_P(WorkersTest, ManyThreadsEnqueueWhileOneShutsDown) {
  Start(2);
  ASSERT_OK(InitAll());
  std::vector<std::thread> threads;
  for (auto& worker : workers_) {
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&worker, t] {
        float value = 1;
        absl::Status status;
        for (int i = 0; status.ok(); ++i) status = Sum(worker.get(), absl::StrCat(t, ".", i), &value);
        EXPECT_TRUE(absl::IsAborted(status) || absl::IsFailedPrecondition(status)) << status;
      });
    }
  }
  float value = 1;
  EXPECT_THAT(OnAll([](WorkerRuntime* worker) {
                float mine = 1;
                return Sum(worker, "shared", &mine);
              }),
              Each(absl::OkStatus()));
  workers_[0]->Shutdown();
  workers_[1]->Shutdown();
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Sum(workers_[0].get(), "after", &value), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace farandole
