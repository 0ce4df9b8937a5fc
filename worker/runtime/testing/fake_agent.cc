#include "worker/runtime/testing/fake_agent.h"

#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/worker_service.grpc.pb.h"
#include "tools/base/clock.h"
#include "tools/base/event_loop.h"
#include "tools/base/mutex.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"
#include "worker/agent/slab_broker.h"

namespace farandole::testing {
namespace {

constexpr char kHost[] = "testhost";

class FakeAgentImpl final : public FakeAgent, private v1::WorkerService::CallbackService {
 public:
  explicit FakeAgentImpl(int size) : job_key_(RandomBytes(32)) {
    for (int rank = 0; rank < size; ++rank) workers_.push_back(Incarnation(RandomId()));
  }
  ~FakeAgentImpl() override {
    Die();
    loop_.Stop();
    if (loop_thread_.joinable()) loop_thread_.join();
  }

  absl::Status Listen() {
    ASSIGN_OR_RETURN(broker_, SlabBroker::Start(&loop_, SlabLimits()));
    loop_thread_ = std::thread([this] { loop_.Run(); });
    ASSIGN_OR_RETURN(server_, UnixServer::Start({this}));
    return absl::OkStatus();
  }

  std::string address() const override { return server_->address(); }
  const std::vector<Incarnation>& workers() const override { return workers_; }

  bool AwaitJoined(int count, Instant deadline) override {
    return Await(deadline, [this, count] {
      mutex_.AssertHeld();
      return static_cast<int>(joined_.size()) >= count;
    });
  }
  bool AwaitLeft(int count, Instant deadline) override {
    return Await(deadline, [this, count] {
      mutex_.AssertHeld();
      return left_ >= count;
    });
  }
  std::vector<std::string> AwaitReports(int count, Instant deadline) override {
    Await(deadline, [this, count] {
      mutex_.AssertHeld();
      return static_cast<int>(reports_.size()) >= count;
    });
    MutexLock lock(&mutex_);
    return reports_;
  }

  void Die() override {
    if (server_ != nullptr) server_->Shutdown(Now());  // cancels the streams
  }

 private:
  // One worker's stream of assignments, guarded by the agent's mutex. Deletes itself when gRPC has done with it.
  class Watcher final : public grpc::ServerWriteReactor<v1::Assignment> {
   public:
    Watcher(FakeAgentImpl* agent, uint64_t after) : agent_(agent), sent_(after) {
      MutexLock lock(&agent_->mutex_);
      agent_->watchers_.insert(this);
      SendNewestLocked();
    }

    void SendNewestLocked() {
      agent_->mutex_.AssertHeld();
      if (writing_ || ended_ || agent_->newest_.generation() <= sent_) return;
      writing_ = true;
      message_ = agent_->newest_;
      sent_ = message_.generation();
      StartWrite(&message_);
    }

   private:
    void OnWriteDone(bool ok) override {
      MutexLock lock(&agent_->mutex_);
      writing_ = false;
      if (ok) return SendNewestLocked();
      EndLocked();
    }
    void OnCancel() override {
      MutexLock lock(&agent_->mutex_);
      EndLocked();
    }
    void EndLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(agent_->mutex_) {
      if (ended_) return;
      ended_ = true;
      Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the agent is ending"));
    }
    void OnDone() override {
      {
        MutexLock lock(&agent_->mutex_);
        agent_->watchers_.erase(this);
      }
      delete this;
    }

    FakeAgentImpl* const agent_;
    uint64_t sent_ ABSL_GUARDED_BY(agent_->mutex_);
    v1::Assignment message_ ABSL_GUARDED_BY(agent_->mutex_);
    bool writing_ ABSL_GUARDED_BY(agent_->mutex_) = false;
    bool ended_ ABSL_GUARDED_BY(agent_->mutex_) = false;
  };

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                 v1::JoinReply* reply) override {
    const int slot = SlotOf(request->incarnation());
    if (slot < 0) return Reply(context, grpc::StatusCode::NOT_FOUND, "no such worker runs here");
    reply->set_protocol(1);
    reply->mutable_worker()->set_host(kHost);
    reply->mutable_worker()->set_slot(slot);
    reply->mutable_worker()->set_incarnation(request->incarnation());
    reply->set_job_key(job_key_);
    reply->set_slab_socket(broker_->socket());
    MutexLock lock(&mutex_);
    joined_[slot] = *request;
    if (joined_.size() == workers_.size()) FormLocked();
    changed_.NotifyAll();
    return Reply(context, grpc::StatusCode::OK, "");
  }

  grpc::ServerWriteReactor<v1::Assignment>* WatchAssignments(grpc::CallbackServerContext*,
                                                             const v1::WatchAssignmentsRequest* request) override {
    return new Watcher(this, request->after_generation());
  }

  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                   v1::ReportReply*) override {
    MutexLock lock(&mutex_);
    reports_.push_back(request->text());
    changed_.NotifyAll();
    return Reply(context, grpc::StatusCode::OK, "");
  }

  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveReply*) override {
    MutexLock lock(&mutex_);
    if (request->generation() != newest_.generation()) {
      return Reply(context, grpc::StatusCode::FAILED_PRECONDITION, "left another generation");
    }
    ++left_;
    changed_.NotifyAll();
    return Reply(context, grpc::StatusCode::OK, "");
  }

  static grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context, grpc::StatusCode code,
                                         const std::string& message) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(code == grpc::StatusCode::OK ? grpc::Status() : grpc::Status(code, message));
    return reactor;
  }

  int SlotOf(uint64_t incarnation) const {
    for (size_t slot = 0; slot < workers_.size(); ++slot) {
      if (workers_[slot].value() == incarnation) return static_cast<int>(slot);
    }
    return -1;
  }

  // All wait: the next generation.
  void FormLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::Assignment next;
    next.set_generation(newest_.generation() + 1);
    for (const auto& [slot, request] : joined_) {
      v1::Member* member = next.add_members();
      member->mutable_worker()->set_host(kHost);
      member->mutable_worker()->set_slot(slot);
      member->mutable_worker()->set_incarnation(request.incarnation());
      member->set_endpoint(request.endpoint());
      v1::Placement* place = member->mutable_placement();
      place->set_rank(slot);
      place->set_size(workers_.size());
      place->set_local_rank(slot);
      place->set_local_size(workers_.size());
      place->set_cross_rank(0);
      place->set_cross_size(1);
    }
    newest_ = std::move(next);
    joined_.clear();
    left_ = 0;
    for (Watcher* watcher : watchers_) watcher->SendNewestLocked();
  }

  template <typename Predicate>
  bool Await(Instant deadline, Predicate predicate) {
    MutexLock lock(&mutex_);
    return changed_.AwaitUntil(&mutex_, deadline, predicate);
  }

  const std::string job_key_;
  std::vector<Incarnation> workers_;

  // Shared memory: all of the broker runs on the loop's thread.
  EventLoop loop_;
  std::unique_ptr<SlabBroker> broker_;
  std::thread loop_thread_;

  Mutex mutex_;
  CondVar changed_;
  std::map<int, v1::JoinRequest> joined_ ABSL_GUARDED_BY(mutex_);  // by slot; those that wait
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
  v1::Assignment newest_ ABSL_GUARDED_BY(mutex_);
  int left_ ABSL_GUARDED_BY(mutex_) = 0;  // of `newest_`
  std::vector<std::string> reports_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<UnixServer> server_;  // last: ends before what its calls use
};

}  // namespace

absl::StatusOr<std::unique_ptr<FakeAgent>> FakeAgent::Start(int size) {
  auto agent = std::make_unique<FakeAgentImpl>(size);
  RETURN_IF_ERROR(agent->Listen());
  return agent;
}

}  // namespace farandole::testing
