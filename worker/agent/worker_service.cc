#include "worker/agent/worker_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/convert/types_convert.h"
#include "tools/base/check.h"

namespace farandole {
namespace {

// This file's revision of worker_service.proto.
constexpr uint32_t kProtocol = 1;

constexpr size_t kMaxEndpoint = 2048;  // of all its addresses
constexpr size_t kMaxText = 16 << 10;

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

grpc::Status Ending() { return {grpc::StatusCode::UNAVAILABLE, "the agent of this host is ending"}; }

}  // namespace

// One WatchAssignments call: writes one assignment at a time, always the newest. All of it is guarded by the service's
// mutex; gRPC runs no reaction inside StartWrite and Finish.
class WorkerService::Watcher final : public grpc::ServerWriteReactor<v1::Assignment> {
 public:
  Watcher(WorkerService* service, uint64_t after) : service_(service), sent_(after) {}

  // Begins to write what is newer than what was sent; ends the call when the service is closed.
  void Go() {
    service_->mutex_.AssertHeld();
    if (service_->closed_) return End(Ending());
    if (writing_ || end_.has_value() || service_->newest_.generation() <= sent_) return;
    assignment_ = service_->newest_;
    sent_ = assignment_.generation();
    writing_ = true;
    StartWrite(&assignment_);
  }

  // Ends the call, when the present write is done. The first status counts.
  void End(const grpc::Status& status) {
    service_->mutex_.AssertHeld();
    if (end_.has_value()) return;
    end_ = status;
    if (!writing_) Finish(status);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&service_->mutex_);
    writing_ = false;
    if (end_.has_value()) {
      Finish(*end_);
    } else if (ok) {
      Go();
    }
  }

  void OnCancel() override {
    MutexLock lock(&service_->mutex_);
    End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    {
      MutexLock lock(&service_->mutex_);
      service_->watchers_.erase(this);
    }
    delete this;
  }

 private:
  WorkerService* const service_;
  uint64_t sent_;
  bool writing_ = false;
  absl::optional<grpc::Status> end_;
  v1::Assignment assignment_;
};

WorkerService::WorkerService(Told told, OnReport on_report)
    : told_(std::move(told)), on_report_(std::move(on_report)) {}

WorkerService::~WorkerService() {
  MutexLock lock(&mutex_);
  CHECK(watchers_.empty()) << "the server of this service still runs";
}

void WorkerService::Add(const WorkerId& worker) {
  MutexLock lock(&mutex_);
  workers_[worker.incarnation.value()] = worker;
}

void WorkerService::Remove(const WorkerId& worker) {
  MutexLock lock(&mutex_);
  workers_.erase(worker.incarnation.value());
}

void WorkerService::Publish(Generation generation, const std::vector<AssignedMember>& members) {
  MutexLock lock(&mutex_);
  if (generation.value() <= newest_.generation()) return;
  newest_ = ToProto(generation, members);
  for (Watcher* watcher : watchers_) watcher->Go();
}

void WorkerService::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  for (Watcher* watcher : watchers_) watcher->Go();
}

grpc::Status WorkerService::Find(uint64_t incarnation, WorkerId* worker) {
  MutexLock lock(&mutex_);
  const auto it = workers_.find(incarnation);
  if (it == workers_.end()) {
    return {grpc::StatusCode::NOT_FOUND,
            absl::StrCat("no worker of incarnation ", absl::Hex(incarnation, absl::kZeroPad16), " runs on this host")};
  }
  *worker = it->second;
  return grpc::Status::OK;
}

grpc::Status WorkerService::TakeJoin(const v1::JoinRequest& request, v1::JoinReply* reply) {
  WorkerId worker;
  if (grpc::Status status = Find(request.incarnation(), &worker); !status.ok()) return status;
  if (request.protocol_min() > kProtocol || request.protocol_max() < kProtocol) {
    return {grpc::StatusCode::FAILED_PRECONDITION,
            absl::StrCat("the library of worker ", worker.slot.host, "/", worker.slot.slot, " (version ",
                         request.version(), ") speaks protocol ", request.protocol_min(), " to ",
                         request.protocol_max(), ", and the agent ", kProtocol)};
  }
  if (request.endpoint().empty() || request.endpoint().size() > kMaxEndpoint) {
    return {grpc::StatusCode::INVALID_ARGUMENT,
            absl::StrCat("endpoint has ", request.endpoint().size(), " bytes; it has 1 to ", kMaxEndpoint)};
  }
  reply->set_protocol(kProtocol);
  *reply->mutable_worker() = ToProto(worker);
  reply->set_job_key(told_.job_key);
  reply->set_slab_socket(told_.slab_socket);
  on_report_(WorkerJoined{worker, request.endpoint(), Generation(request.after_generation())});
  return grpc::Status::OK;
}

grpc::ServerUnaryReactor* WorkerService::Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                              v1::JoinReply* reply) {
  return Answer(context, TakeJoin(*request, reply));
}

grpc::ServerWriteReactor<v1::Assignment>* WorkerService::WatchAssignments(grpc::CallbackServerContext* context,
                                                                          const v1::WatchAssignmentsRequest* request) {
  WorkerId worker;
  const grpc::Status status = Find(request->incarnation(), &worker);
  auto* watcher = new Watcher(this, request->after_generation());  // deletes itself when the call is done
  MutexLock lock(&mutex_);
  watchers_.insert(watcher);
  status.ok() ? watcher->Go() : watcher->End(status);
  return watcher;
}

grpc::ServerUnaryReactor* WorkerService::Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                                v1::ReportReply* reply) {
  WorkerId worker;
  const grpc::Status status = Find(request->incarnation(), &worker);
  if (status.ok())
    on_report_(WorkerSaid{worker, Generation(request->generation()), request->text().substr(0, kMaxText)});
  return Answer(context, status);
}

grpc::ServerUnaryReactor* WorkerService::Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                               v1::LeaveReply* reply) {
  WorkerId worker;
  const grpc::Status status = Find(request->incarnation(), &worker);
  if (status.ok()) on_report_(WorkerLeft{worker, Generation(request->generation())});
  return Answer(context, status);
}

}  // namespace farandole
