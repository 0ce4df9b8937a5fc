#include "worker/runtime/agent_client.h"

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "driver/core/actions.h"
#include "driver/core/ids.h"
#include "grpcpp/grpcpp.h"
#include "proto/convert/types_convert.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/worker_service.grpc.pb.h"
#include "tools/base/clock.h"
#include "tools/base/log.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"
#include "tools/base/version.h"

namespace farandole {
namespace {

constexpr uint32_t kProtocol = 1;

// A report is a courtesy: nothing waits for it longer than this.
constexpr absl::Duration kReportTimeout = absl::Milliseconds(500);

gpr_timespec ToGrpc(Instant deadline) {
  if (deadline.is_infinite()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_from_nanos(deadline.nanos(), GPR_CLOCK_MONOTONIC);
}

absl::Status ToAbsl(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

class GrpcAgentClient final : public AgentClient, private grpc::ClientReadReactor<v1::Assignment> {
 public:
  GrpcAgentClient(std::string address, std::shared_ptr<grpc::Channel> channel, Incarnation incarnation)
      : address_(std::move(address)), incarnation_(incarnation), stub_(v1::WorkerService::NewStub(channel)) {}

  ~GrpcAgentClient() override {
    {
      MutexLock lock(&mutex_);
      closing_ = true;
    }
    watch_context_.TryCancel();
    MutexLock lock(&mutex_);
    idle_.Await(&mutex_, [this] {
      mutex_.AssertHeld();
      return calls_ == 0;
    });
  }

  absl::StatusOr<JoinedJob> Join(const std::string& endpoint, Generation after, Instant deadline) override {
    v1::JoinRequest request;
    request.set_protocol_min(kProtocol);
    request.set_protocol_max(kProtocol);
    request.set_incarnation(incarnation_.value());
    request.set_endpoint(endpoint);
    request.set_after_generation(after.value());
    request.set_version(kVersion);
    v1::JoinReply reply;
    grpc::ClientContext context;
    context.set_deadline(ToGrpc(deadline));
    RETURN_IF_ERROR(ToAbsl(stub_->Join(&context, request, &reply))) << Agent() << " refused this worker";
    if (reply.protocol() != kProtocol || !reply.has_worker() || reply.job_key().empty()) {
      return absl::InternalError(absl::StrCat(Agent(), " answered without a protocol of ours, a worker or a key"));
    }
    return JoinedJob{reply.worker().host(), static_cast<int>(reply.worker().slot()), reply.job_key(),
                     reply.slab_socket()};
  }

  void Watch(Generation after, OnAssignment on_assignment, OnLost on_lost) override {
    on_assignment_ = std::move(on_assignment);
    on_lost_ = std::move(on_lost);
    watch_request_.set_incarnation(incarnation_.value());
    watch_request_.set_after_generation(after.value());
    BeginCall();
    stub_->async()->WatchAssignments(&watch_context_, &watch_request_, this);
    StartRead(&assignment_);
    StartCall();
  }

  void Report(Generation generation, const std::string& text) override {
    v1::ReportRequest request;
    request.set_incarnation(incarnation_.value());
    request.set_generation(generation.value());
    request.set_text(ToUtf8(text));
    v1::ReportReply reply;
    grpc::ClientContext context;
    context.set_deadline(ToGrpc(Now() + kReportTimeout));
    const absl::Status told = ToAbsl(stub_->Report(&context, request, &reply));
    if (!told.ok()) LOG(INFO) << Agent() << " was not told of the loss: " << told.message();
  }

  absl::Status Leave(Generation generation, Instant deadline) override {
    v1::LeaveRequest request;
    request.set_incarnation(incarnation_.value());
    request.set_generation(generation.value());
    v1::LeaveReply reply;
    grpc::ClientContext context;
    context.set_deadline(ToGrpc(deadline));
    RETURN_IF_ERROR(ToAbsl(stub_->Leave(&context, request, &reply))) << Agent() << " did not take our leave";
    return absl::OkStatus();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone follows
    absl::StatusOr<Assignment> assignment = ToAssignment(assignment_);
    if (!assignment.ok()) {
      nonsense_ = std::string(assignment.status().message());
      watch_context_.TryCancel();
      return;
    }
    on_assignment_(*std::move(assignment));
    StartRead(&assignment_);
  }

  void OnDone(const grpc::Status& status) override {
    bool closing;
    {
      MutexLock lock(&mutex_);
      closing = closing_;
    }
    if (!closing) {
      on_lost_(absl::StrCat(Agent(), nonsense_.empty() ? " is gone: " : " made no sense: ",
                            nonsense_.empty() ? Words(status) : nonsense_));
    }
    EndCall();
  }

  static std::string Words(const grpc::Status& status) {
    if (!status.error_message().empty()) return status.error_message();
    return status.ok() ? "it ended the session" : absl::StatusCodeToString(ToAbsl(status).code());
  }

  absl::StatusOr<Assignment> ToAssignment(const v1::Assignment& proto) const;

  std::string Agent() const { return absl::StrCat("the agent of this host (", address_, ")"); }

  void BeginCall() {
    MutexLock lock(&mutex_);
    ++calls_;
  }
  // The last thing that a callback does: the destructor may run at once.
  void EndCall() {
    MutexLock lock(&mutex_);
    if (--calls_ == 0) idle_.NotifyAll();
  }

  const std::string address_;
  const Incarnation incarnation_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;

  // The watch: set before it begins, then its callbacks', which come one at a time.
  OnAssignment on_assignment_;
  OnLost on_lost_;
  v1::WatchAssignmentsRequest watch_request_;
  v1::Assignment assignment_;
  std::string nonsense_;
  grpc::ClientContext watch_context_;

  Mutex mutex_;
  CondVar idle_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;  // asynchronous calls under way
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::StatusOr<Assignment> GrpcAgentClient::ToAssignment(const v1::Assignment& proto) const {
  ASSIGN_OR_RETURN(const std::vector<AssignedMember> members, FromProto(proto), std::move(_) << "assignment");
  Assignment assignment;
  GroupSpec& group = assignment.group;
  group.generation = Generation(proto.generation());
  group.rank = -1;
  const AssignedMember& first = members.front();
  for (const AssignedMember& member : members) {
    const Placement& place = member.placement;
    assignment.place.homogeneous &= place.local_size == first.placement.local_size;
    if (member.worker.incarnation == incarnation_) {
      group.rank = place.rank;
      assignment.place.rank = place.rank;
      assignment.place.size = place.size;
      assignment.place.local_rank = place.local_rank;
      assignment.place.local_size = place.local_size;
      assignment.place.cross_rank = place.cross_rank;
      assignment.place.cross_size = place.cross_size;
    }
    group.members.push_back(GroupMember{member.worker.slot.host, member.worker.incarnation, member.endpoint});
  }
  return assignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AgentClient>> AgentClient::Connect(const std::string& address, Incarnation incarnation) {
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, ConnectUnix(address),
                   std::move(_) << "the agent of this host (FARANDOLE_AGENT)");
  return std::make_unique<GrpcAgentClient>(address, std::move(channel), incarnation);
}

}  // namespace farandole
