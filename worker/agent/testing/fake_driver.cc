#include "worker/agent/testing/fake_driver.h"

#include <deque>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/tls_server.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "tools/base/check.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

class FakeDriverImpl final : public FakeDriver, private v1::AgentService::CallbackService {
 public:
  explicit FakeDriverImpl(const JobAuthority* authority) {
    if (authority != nullptr) {
      OpenTls(*authority);
      return;
    }
    absl::StatusOr<std::unique_ptr<UnixServer>> server = UnixServer::Start({this});
    CHECK(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = server_->address();
  }
  ~FakeDriverImpl() override {
    if (server_ != nullptr) server_->Shutdown(Now());
    if (tls_server_ != nullptr) tls_server_->Shutdown(Now());
  }

  std::string address() const override { return address_; }

  void Send(v1::DriverMessage message) override {
    MutexLock lock(&mutex_);
    SendLocked(std::move(message));
  }

  void EndStream(int code, const std::string& text) override {
    MutexLock lock(&mutex_);
    CHECK(stream_ != nullptr && queue_.empty());
    stream_->End(grpc::Status(static_cast<grpc::StatusCode>(code), text));
  }

  void GiveBackCredit() override {
    MutexLock lock(&mutex_);
    gives_back_ = true;
    if (owed_ > 0) SendLocked(Credit(std::exchange(owed_, 0)));
  }

  std::vector<v1::AgentMessage> Messages() override {
    MutexLock lock(&mutex_);
    return messages_;
  }
  int Heartbeats() override {
    MutexLock lock(&mutex_);
    return heartbeats_;
  }
  std::string Output(uint32_t slot, v1::Output::Stream stream) override {
    MutexLock lock(&mutex_);
    return output_[{slot, stream}];
  }

  bool Await(const std::function<bool(const std::vector<v1::AgentMessage>&)>& condition) override {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + kPatience, [&] {
      mutex_.AssertHeld();
      return condition(messages_);
    });
  }
  bool AwaitHeartbeats(int count) override {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + kPatience, [&] {
      mutex_.AssertHeld();
      return heartbeats_ >= count;
    });
  }
  bool AwaitStreamEnd() override {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, Now() + kPatience, [this] {
      mutex_.AssertHeld();
      return stream_ended_;
    });
  }

 private:
  // Guarded by the driver's mutex.
  class Stream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::DriverMessage> {
   public:
    explicit Stream(FakeDriverImpl* driver) : driver_(driver) { StartRead(&message_); }

    void End(const grpc::Status& status) {
      if (!std::exchange(finished_, true)) Finish(status);
    }
    void Write(const v1::DriverMessage* message) {
      if (!finished_) StartWrite(message);
    }

    void OnReadDone(bool ok) override {
      MutexLock lock(&driver_->mutex_);
      if (!ok) {
        driver_->stream_ended_ = true;
        driver_->changed_.NotifyAll();
        return End(grpc::Status::OK);
      }
      driver_->Take(message_);
      StartRead(&message_);
    }
    void OnWriteDone(bool ok) override {
      MutexLock lock(&driver_->mutex_);
      driver_->queue_.pop_front();
      if (!driver_->queue_.empty()) Write(&driver_->queue_.front());
    }
    void OnCancel() override {
      MutexLock lock(&driver_->mutex_);
      End(grpc::Status::CANCELLED);
    }
    void OnDone() override {
      {
        MutexLock lock(&driver_->mutex_);
        if (driver_->stream_ == this) driver_->stream_ = nullptr;
      }
      delete this;
    }

   private:
    FakeDriverImpl* const driver_;
    v1::AgentMessage message_;
    bool finished_ = false;
  };

  void OpenTls(const JobAuthority& authority) {
    absl::StatusOr<TlsIdentity> identity = authority.IssueServer();
    CHECK(identity.ok()) << identity.status();
    TlsServerOptions options;
    options.identity = *std::move(identity);
    absl::StatusOr<std::unique_ptr<TlsServer>> server = TlsServer::Start({this}, std::move(options));
    CHECK(server.ok()) << server.status();
    tls_server_ = *std::move(server);
    absl::StatusOr<std::string> endpoint = tls_server_->Listen("127.0.0.1");
    CHECK(endpoint.ok()) << endpoint.status();
    address_ = *std::move(endpoint);
  }

  grpc::ServerBidiReactor<v1::AgentMessage, v1::DriverMessage>* Connect(grpc::CallbackServerContext*) override {
    MutexLock lock(&mutex_);
    stream_ = new Stream(this);
    return stream_;
  }

  void SendLocked(v1::DriverMessage message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (stream_ == nullptr) return;  // what is sent to an agent that has gone is lost
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) stream_->Write(&queue_.front());
  }

  static v1::DriverMessage Credit(uint64_t bytes) {
    v1::DriverMessage message;
    message.mutable_output_credit()->set_bytes(bytes);
    return message;
  }

  void Take(const v1::AgentMessage& message) {
    mutex_.AssertHeld();
    if (message.has_heartbeat()) {
      ++heartbeats_;
    } else {
      messages_.push_back(message);
    }
    if (message.has_output()) {
      const v1::Output& output = message.output();
      output_[{output.worker().slot(), output.stream()}] += output.data();
      owed_ += output.data().size();
      if (gives_back_) SendLocked(Credit(std::exchange(owed_, 0)));
    }
    changed_.NotifyAll();
  }

  std::unique_ptr<UnixServer> server_;  // or
  std::unique_ptr<TlsServer> tls_server_;
  std::string address_;
  Mutex mutex_;
  CondVar changed_;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) =
      nullptr;  // deletes itself; none before an agent connects and after it has gone
  bool stream_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::DriverMessage> queue_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  std::vector<v1::AgentMessage> messages_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<uint32_t, v1::Output::Stream>, std::string> output_ ABSL_GUARDED_BY(mutex_);
  int heartbeats_ ABSL_GUARDED_BY(mutex_) = 0;
  bool gives_back_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t owed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<FakeDriver> FakeDriver::Start() { return std::make_unique<FakeDriverImpl>(nullptr); }

std::unique_ptr<FakeDriver> FakeDriver::StartTls(const JobAuthority& authority) {
  return std::make_unique<FakeDriverImpl>(&authority);
}

}  // namespace farandole::testing
