#include "driver/service/agent_service.h"

#include <map>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "driver/service/connection.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

class AgentServiceImpl final : public AgentService, public AgentRegistry, public v1::AgentService::CallbackService {
 public:
  AgentServiceImpl(AgentServiceOptions options, AgentListener* listener)
      : options_(std::move(options)), listener_(listener) {}
  ~AgentServiceImpl() override {
    if (server_ != nullptr) Shutdown(Now());
  }

  absl::Status Open() {
    ASSIGN_OR_RETURN(server_, UnixServer::Start({this}), std::move(_) << "the driver's listener for agents");
    return absl::OkStatus();
  }

  std::string address() const override { return server_->address(); }

  void Expect(const AgentIdentity& agent) override {
    MutexLock lock(&mutex_);
    expected_[agent.host] = Expected{agent.incarnation, nullptr};
  }

  void Spawn(const SpawnWorker& action, const WorkerCommand& command) override {
    if (const auto connection = Find(action.worker.slot.host)) connection->Send(ToProto(action, command));
  }

  void Signal(const SignalWorker& action) override {
    if (const auto connection = Find(action.worker.slot.host)) connection->Send(ToProto(action));
  }

  void Assign(const SendAssignment& action) override {
    const v1::DriverMessage message = ToProto(action);
    MutexLock lock(&mutex_);
    for (const auto& [host, expected] : expected_) {
      if (expected.connection != nullptr) expected.connection->Send(message);
    }
  }

  bool End(const EndAgent& action) override {
    MutexLock lock(&mutex_);
    const auto it = expected_.find(action.host);
    if (it == expected_.end() || it->second.incarnation != action.incarnation) return false;
    if (it->second.connection == nullptr) {
      expected_.erase(it);
      return false;
    }
    it->second.connection->SendEnd(ToProto(action));
    return true;
  }

  void Drop(const AgentIdentity& agent) override {
    const auto connection = Find(agent.host);
    Unregister(agent);
    if (connection != nullptr) connection->Cancel();
  }

  void ReturnCredit(const AgentIdentity& agent, int64_t bytes) override {
    if (const auto connection = Find(agent.host)) connection->ReturnCredit(bytes);
  }

  void Shutdown(Instant deadline) override {
    std::set<std::shared_ptr<Connection>> connections;
    {
      MutexLock lock(&mutex_);
      shutting_down_ = true;
      connections = connections_;
    }
    for (const auto& connection : connections) {
      if (!connection->registered()) connection->Cancel();  // nothing of this job is behind it
    }
    connections.clear();
    server_->Shutdown(deadline);
  }

  // --- gRPC
  grpc::ServerBidiReactor<v1::AgentMessage, v1::DriverMessage>* Connect(grpc::CallbackServerContext* context) override {
    const std::shared_ptr<Connection> connection = Connection::Make(context, options_, this, listener_);
    bool too_late = false;
    {
      MutexLock lock(&mutex_);
      connections_.insert(connection);
      too_late = shutting_down_;
    }
    connection->Begin();
    if (too_late) connection->Cancel();
    return connection.get();
  }

  // --- AgentRegistry
  absl::Status Register(const AgentHello& hello, const std::shared_ptr<Connection>& connection) override {
    MutexLock lock(&mutex_);
    const auto it = expected_.find(hello.agent.host);
    if (shutting_down_ || hello.job != options_.job || it == expected_.end() ||
        it->second.incarnation != hello.agent.incarnation) {
      return absl::NotFoundError(
          absl::StrCat("this driver does not wait for this agent of host ", hello.agent.host, " in job ", hello.job));
    }
    if (it->second.connection != nullptr) {
      return absl::AlreadyExistsError(absl::StrCat("an agent of host ", hello.agent.host, " is connected"));
    }
    if (hello.protocol_max < kDriverProtocolMin || hello.protocol_min > kDriverProtocolMax) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the agent of host ", hello.agent.host, " (version ", hello.version, ") speaks protocol ", hello.protocol_min,
          " to ", hello.protocol_max, ", the driver ", kDriverProtocolMin, " to ", kDriverProtocolMax));
    }
    it->second.connection = connection;
    return absl::OkStatus();
  }

  void Unregister(const AgentIdentity& agent) override {
    MutexLock lock(&mutex_);
    const auto it = expected_.find(agent.host);
    if (it != expected_.end() && it->second.incarnation == agent.incarnation) expected_.erase(it);
  }

  void Forget(const std::shared_ptr<Connection>& connection) override {
    MutexLock lock(&mutex_);
    connections_.erase(connection);
  }

 private:
  struct Expected {
    Incarnation incarnation;
    std::shared_ptr<Connection> connection;  // null: not there yet
  };

  std::shared_ptr<Connection> Find(const std::string& host) const {
    MutexLock lock(&mutex_);
    const auto it = expected_.find(host);
    return it == expected_.end() ? nullptr : it->second.connection;
  }

  const AgentServiceOptions options_;
  AgentListener* const listener_;

  mutable Mutex mutex_;                                               // taken before a connection's own
  std::map<std::string, Expected> expected_ ABSL_GUARDED_BY(mutex_);  // by host; an entry goes with its agent
  std::set<std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
  bool shutting_down_ ABSL_GUARDED_BY(mutex_) = false;

  std::unique_ptr<UnixServer> server_;  // last: ends first
};

}  // namespace

absl::StatusOr<std::unique_ptr<AgentService>> AgentService::Start(AgentServiceOptions options,
                                                                  AgentListener* listener) {
  auto service = std::make_unique<AgentServiceImpl>(std::move(options), listener);
  RETURN_IF_ERROR(service->Open());
  return std::unique_ptr<AgentService>(std::move(service));
}

}  // namespace farandole
