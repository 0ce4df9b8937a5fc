#include "worker/agent/worker_service.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc/unix_server.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const WorkerId kWorker{SlotId{"a", 1}, Incarnation(0xabc)};

std::vector<AssignedMember> Members() {
  Placement place;
  place.size = place.local_size = place.cross_size = 1;
  return {AssignedMember{kWorker, place, "127.0.0.1:7"}};
}

class WorkerServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    service_.Add(kWorker);
    ASSERT_OK_AND_ASSIGN(server_, UnixServer::Start({&service_}));
    ASSERT_OK_AND_ASSIGN(auto channel, ConnectUnix(server_->address()));
    stub_ = v1::WorkerService::NewStub(channel);
  }

  grpc::Status Join(v1::JoinRequest request, v1::JoinReply* reply) {
    grpc::ClientContext context;
    return stub_->Join(&context, request, reply);
  }
  static v1::JoinRequest Request() {
    v1::JoinRequest request;
    request.set_protocol_min(1);
    request.set_protocol_max(2);
    request.set_incarnation(0xabc);
    request.set_endpoint("127.0.0.1:7");
    request.set_after_generation(3);
    return request;
  }
  std::unique_ptr<grpc::ClientReader<v1::Assignment>> Watch(uint64_t incarnation, uint64_t after) {
    v1::WatchAssignmentsRequest request;
    request.set_incarnation(incarnation);
    request.set_after_generation(after);
    return stub_->WatchAssignments(&watch_context_, request);
  }
  std::vector<AgentReport> Reports() {
    MutexLock lock(&mutex_);
    return reports_;
  }

  Mutex mutex_;
  std::vector<AgentReport> reports_;
  WorkerService service_{{"key", "slabs"}, [this](AgentReport report) {
                           MutexLock lock(&mutex_);
                           reports_.push_back(std::move(report));
                         }};
  std::unique_ptr<UnixServer> server_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext watch_context_;
};

TEST_F(WorkerServiceTest, AJoinIsAnsweredAndReported) {
  v1::JoinReply reply;
  ASSERT_TRUE(Join(Request(), &reply).ok());
  EXPECT_EQ(reply.protocol(), 1u);
  EXPECT_EQ(reply.worker().host(), "a");
  EXPECT_EQ(reply.worker().slot(), 1u);
  EXPECT_EQ(reply.job_key(), "key");
  EXPECT_EQ(reply.slab_socket(), "slabs");
  ASSERT_THAT(Reports(), SizeIs(1));
  const auto joined = std::get<WorkerJoined>(Reports()[0]);
  EXPECT_EQ(joined.worker, kWorker);
  EXPECT_EQ(joined.endpoint, "127.0.0.1:7");
  EXPECT_EQ(joined.after, Generation(3));
}

TEST_F(WorkerServiceTest, RefusesStrangersAndOtherProtocols) {
  v1::JoinReply reply;
  v1::JoinRequest request = Request();
  request.set_incarnation(0xdef);
  grpc::Status status = Join(request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("no worker of incarnation 0000000000000def"));
  request = Request();
  request.set_protocol_min(2);
  status = Join(request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("speaks protocol 2 to 2, and the agent 1"));
  request = Request();
  request.clear_endpoint();
  EXPECT_EQ(Join(request, &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Watch(0xdef, 0)->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  service_.Remove(kWorker);
  EXPECT_EQ(Join(Request(), &reply).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Reports(), SizeIs(0));
}

TEST_F(WorkerServiceTest, WatchersGetWhatIsNewerThanTheyKnow) {
  service_.Publish(Generation(3), Members());
  const auto reader = Watch(0xabc, 3);
  service_.Publish(Generation(5), Members());
  service_.Publish(Generation(4), Members());  // late: nobody wants it
  v1::Assignment assignment;
  ASSERT_TRUE(reader->Read(&assignment));
  EXPECT_EQ(assignment.generation(), 5u);
  EXPECT_EQ(assignment.members(0).endpoint(), "127.0.0.1:7");
  service_.Publish(Generation(6), Members());
  ASSERT_TRUE(reader->Read(&assignment));
  EXPECT_EQ(assignment.generation(), 6u);
  service_.Close();
  EXPECT_FALSE(reader->Read(&assignment));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the agent of this host is ending");
}

TEST_F(WorkerServiceTest, PassesOnWhatAWorkerSays) {
  grpc::ClientContext report_context, leave_context;
  v1::ReportRequest report;
  v1::ReportReply report_reply;
  report.set_incarnation(0xabc);
  report.set_generation(3);
  report.set_text("rank 2 is gone");
  ASSERT_TRUE(stub_->Report(&report_context, report, &report_reply).ok());
  v1::LeaveRequest leave;
  v1::LeaveReply leave_reply;
  leave.set_incarnation(0xabc);
  leave.set_generation(3);
  ASSERT_TRUE(stub_->Leave(&leave_context, leave, &leave_reply).ok());
  const std::vector<AgentReport> reports = Reports();
  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_EQ(std::get<WorkerSaid>(reports[0]).text, "rank 2 is gone");
  EXPECT_EQ(std::get<WorkerSaid>(reports[0]).generation, Generation(3));
  EXPECT_EQ(std::get<WorkerLeft>(reports[1]).worker, kWorker);
}

}  // namespace
}  // namespace farandole
