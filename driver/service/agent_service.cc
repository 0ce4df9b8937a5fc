#include "driver/service/agent_service.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "driver/service/connection.h"
#include "driver/service/relays.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/tls_server.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr absl::Duration kLastWord = absl::Milliseconds(200);

class AgentServiceImpl final : public AgentService, public AgentRegistry, public v1::AgentService::CallbackService {
 public:
  AgentServiceImpl(AgentServiceOptions options, AgentListener* listener)
      : options_(std::move(options)), listener_(listener), relays_(Relays::Start(options_.job)) {}
  ~AgentServiceImpl() override {
    if (server_ != nullptr) Shutdown(Now());
  }

  absl::Status Open() {
    ASSIGN_OR_RETURN(server_, UnixServer::Start({this}), std::move(_) << "the driver's listener for agents");
    return absl::OkStatus();
  }

  std::string address() const override { return server_->address(); }

  absl::StatusOr<std::string> Listen(const std::string& address) override {
    ASSIGN_OR_RETURN(TlsServer* const server, StartTls());
    ASSIGN_OR_RETURN(std::string endpoint, server->Listen(address), std::move(_) << "the driver's listener for agents");
    return endpoint;
  }

  AgentServiceStats stats() const override {
    AgentServiceStats stats;
    stats.listening.push_back(server_->address());
    stats.other_users = server_->refused();
    if (const TlsServer* const server = FindTls(); server != nullptr) {
      for (std::string& endpoint : server->listening()) stats.listening.push_back(std::move(endpoint));
      stats.tls = server->stats();
    }
    stats.relays_refused = relays_->refused();
    return stats;
  }

  void Expect(const AgentIdentity& agent) override {
    MutexLock lock(&mutex_);
    if (const auto before = expected_.find(agent.host); before != expected_.end()) Erase(before);
    expected_[agent.host].incarnation = agent.incarnation;
  }

  void Spawn(const SpawnWorker& action, const WorkerCommand& command) override {
    const auto connection = Find(action.worker.slot.host);
    if (connection == nullptr) return;
    connection->Send(ToProto(action, command, /*has_input=*/options_.worker_input != nullptr));
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
      Erase(it);
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

  void OpenRelay(const std::string& via, const std::string& address, int port, Instant deadline,
                 RelayDone done) override {
    const std::string target = absl::StrCat(address, " port ", port);
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      const auto it = expected_.find(via);
      if (shutting_down_) {
        status = absl::UnavailableError("the driver is ending");
      } else if (it == expected_.end()) {
        status = absl::NotFoundError("it has no agent, or has none any more");
      } else {
        const AgentIdentity agent{via, it->second.incarnation};
        const uint64_t relay = relays_->Await(agent, target, deadline, std::move(done));
        it->second.Send(OpenRelayToProto(relay, address, port));
        return;
      }
    }
    done(absl::Status(status.code(), absl::StrCat("to ", target, " by way of host ", via, ": ", status.message())));
  }

  void Shutdown(Instant deadline) override {
    std::set<std::shared_ptr<Connection>> connections;
    {
      MutexLock lock(&mutex_);
      shutting_down_ = true;
      connections = connections_;
    }
    relays_->Close();
    for (const auto& connection : connections) {
      if (!connection->registered()) connection->Cancel();  // nothing of this job is behind it
    }
    connections.clear();
    {
      MutexLock lock(&mutex_);
      connections_changed_.AwaitUntil(&mutex_, deadline, [this] {
        mutex_.AssertHeld();
        return connections_.empty();
      });
    }
    // With no call left there is nothing to wait for but a last word over connections that may be dead: gRPC would wait
    // for an answer to it.
    deadline = std::min(deadline, Now() + kLastWord);
    // Side by side: both wait for agents.
    std::thread tls;
    if (TlsServer* const server = FindTls(); server != nullptr) {
      tls = std::thread([server, deadline] { server->Shutdown(deadline); });
    }
    server_->Shutdown(deadline);
    if (tls.joinable()) tls.join();
    relays_->Stop();
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

  grpc::ServerBidiReactor<v1::RelayBytes, v1::RelayBytes>* Relay(grpc::CallbackServerContext* context) override {
    return relays_->Accept(context);
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
    for (v1::DriverMessage& message : it->second.waiting) connection->Send(std::move(message));
    it->second.waiting.clear();
    return absl::OkStatus();
  }

  void Unregister(const AgentIdentity& agent) override {
    MutexLock lock(&mutex_);
    const auto it = expected_.find(agent.host);
    if (it != expected_.end() && it->second.incarnation == agent.incarnation) Erase(it);
  }

  void Forget(const std::shared_ptr<Connection>& connection) override {
    MutexLock lock(&mutex_);
    connections_.erase(connection);
    connections_changed_.NotifyAll();
  }

 private:
  struct Expected {
    Incarnation incarnation;
    std::shared_ptr<Connection> connection;  // null: not there yet
    std::vector<v1::DriverMessage> waiting;  // for it

    void Send(v1::DriverMessage message) {
      if (connection == nullptr) return waiting.push_back(std::move(message));
      connection->Send(std::move(message));
    }
  };

  void Erase(std::map<std::string, Expected>::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    relays_->Drop({it->first, it->second.incarnation});
    expected_.erase(it);
  }

  std::shared_ptr<Connection> Find(const std::string& host) const {
    MutexLock lock(&mutex_);
    const auto it = expected_.find(host);
    return it == expected_.end() ? nullptr : it->second.connection;
  }

  TlsServer* FindTls() const {
    MutexLock lock(&tls_mutex_);
    return tls_server_.get();
  }

  absl::StatusOr<TlsServer*> StartTls() {
    if (options_.authority == nullptr) return absl::FailedPreconditionError("this job has no authority");
    {
      MutexLock lock(&mutex_);
      if (shutting_down_) return absl::UnavailableError("the driver is ending");
    }
    MutexLock lock(&tls_mutex_);
    if (tls_server_ == nullptr) {
      TlsServerOptions options;
      ASSIGN_OR_RETURN(options.identity, options_.authority->IssueServer(), std::move(_) << "the driver's certificate");
      options.first_port = options_.first_port;
      options.last_port = options_.last_port;
      options.max_unproven = options_.max_unproven;
      ASSIGN_OR_RETURN(tls_server_, TlsServer::Start({this}, std::move(options)));
    }
    return tls_server_.get();
  }

  const AgentServiceOptions options_;
  AgentListener* const listener_;
  const std::unique_ptr<Relays> relays_;

  mutable Mutex mutex_;                                               // taken before a connection's own
  std::map<std::string, Expected> expected_ ABSL_GUARDED_BY(mutex_);  // by host; an entry goes with its agent
  CondVar connections_changed_;
  std::set<std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
  bool shutting_down_ ABSL_GUARDED_BY(mutex_) = false;

  mutable Mutex tls_mutex_;
  std::unique_ptr<TlsServer> tls_server_ ABSL_GUARDED_BY(tls_mutex_);  // from the first Listen() on

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
