#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "driver/core/actions.h"
#include "driver/core/ids.h"
#include "grpcpp/grpcpp.h"
#include "proto/v1/worker_service.grpc.pb.h"
#include "tools/base/mutex.h"
#include "worker/agent/core/reports.h"

namespace farandole {

// What the workers' libraries talk to (proto/v1/worker_service.proto), served by a UnixServer. Knows which workers run
// and the newest assignment, and answers by itself; what a worker says becomes a report.
//
// Threads: all methods may be called from any thread.
class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  struct Told {
    std::string job_key;
    std::string slab_socket;
  };
  // Takes WorkerJoined, WorkerLeft and WorkerSaid. Called on gRPC's threads, before the worker has its answer; does not
  // block.
  using OnReport = std::function<void(AgentReport)>;

  WorkerService(Told told, OnReport on_report);
  ~WorkerService() override;  // after its server has been shut down

  // A worker that may connect: before its process exists, until it is gone.
  void Add(const WorkerId& worker);
  void Remove(const WorkerId& worker);

  // Sends the assignment to all who watch for it, if it is newer than the one before.
  void Publish(Generation generation, const std::vector<AssignedMember>& members);

  // Ends all watches and refuses new ones with UNAVAILABLE: the agent is ending.
  void Close();

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const v1::JoinRequest* request,
                                 v1::JoinReply* reply) override;
  grpc::ServerWriteReactor<v1::Assignment>* WatchAssignments(grpc::CallbackServerContext* context,
                                                             const v1::WatchAssignmentsRequest* request) override;
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context, const v1::ReportRequest* request,
                                   v1::ReportReply* reply) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveReply* reply) override;

 private:
  class Watcher;

  grpc::Status TakeJoin(const v1::JoinRequest& request, v1::JoinReply* reply) ABSL_LOCKS_EXCLUDED(mutex_);
  grpc::Status Find(uint64_t incarnation, WorkerId* worker) ABSL_LOCKS_EXCLUDED(mutex_);

  const Told told_;
  const OnReport on_report_;

  Mutex mutex_;
  std::map<uint64_t, WorkerId> workers_ ABSL_GUARDED_BY(mutex_);  // by incarnation
  v1::Assignment newest_ ABSL_GUARDED_BY(mutex_);                 // generation 0: none yet
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace farandole
