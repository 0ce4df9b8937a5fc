#include "worker/agent/driver_link.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/rpc/unix_server.h"
#include "tools/base/clock.h"
#include "tools/base/event_loop.h"
#include "tools/base/mutex.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using Case = v1::AgentMessage::MessageCase;

// A driver that reads nothing until it is told to, and then all.
class SlowDriver : public v1::AgentService::CallbackService {
 public:
  grpc::ServerBidiReactor<v1::AgentMessage, v1::DriverMessage>* Connect(grpc::CallbackServerContext*) override {
    auto* const reading = new Reading(this);
    MutexLock lock(&mutex_);
    reading_ = reading;
    changed_.NotifyAll();
    return reading;
  }

  void Read() {
    MutexLock lock(&mutex_);
    changed_.Await(&mutex_, [this] {
      mutex_.AssertHeld();
      return reading_ != nullptr;
    });
    reading_->Next();
  }

  // The kinds of all messages, once the stream is at its end.
  std::vector<Case> AwaitAll() {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(changed_.AwaitUntil(&mutex_, Now() + absl::Seconds(30), [this] {
      mutex_.AssertHeld();
      return ended_;
    }));
    return seen_;
  }

 private:
  class Reading final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::DriverMessage> {
   public:
    explicit Reading(SlowDriver* driver) : driver_(driver) {}
    void Next() { StartRead(&message_); }
    void OnReadDone(bool ok) override {
      {
        MutexLock lock(&driver_->mutex_);
        if (ok) driver_->seen_.push_back(message_.message_case());
        driver_->ended_ = !ok;
        driver_->changed_.NotifyAll();
      }
      if (ok) return Next();
      Finish(grpc::Status::OK);
    }
    void OnCancel() override {}
    void OnDone() override { delete this; }

   private:
    SlowDriver* const driver_;
    v1::AgentMessage message_;
  };

  Mutex mutex_;
  CondVar changed_;
  Reading* reading_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<Case> seen_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(DriverLink, ASignOfLifeIsSentBehindAnyBacklogAndOnlyOneWaits) {
  SlowDriver driver;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<UnixServer> server, UnixServer::Start({&driver}));
  ASSERT_OK_AND_ASSIGN(std::shared_ptr<grpc::Channel> channel, ConnectUnix(server->address()));
  EventLoop loop;
  std::thread thread([&loop] { loop.Run(); });
  DriverLink link(std::move(channel), &loop, {[](AgentCommand) {}, [](const absl::Status&) {}});
  constexpr int kPieces = 64;  // far more than a connection takes from whoever is not read from
  WorkerOutput output;
  output.worker = {{"a", 0}, Incarnation(1)};
  output.data = std::string(64 << 10, 'x');
  for (int i = 0; i < kPieces; ++i) link.Send(output);
  for (int i = 0; i < 3; ++i) link.SendHeartbeat();
  driver.Read();
  link.Finish();
  const std::vector<Case> seen = driver.AwaitAll();
  EXPECT_EQ(seen.size(), kPieces + 1u);
  EXPECT_EQ(seen.empty() ? Case::MESSAGE_NOT_SET : seen.back(), Case::kHeartbeat);
  loop.Stop();  // before the link goes, whose events run there
  thread.join();
}

}  // namespace
}  // namespace farandole
