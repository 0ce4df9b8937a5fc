// An agent at its work: what it is told and what it tells.

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/worker_service.grpc.pb.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/version.h"
#include "worker/agent/slab_client.h"
#include "worker/agent/testing/agent_fixture.h"

namespace farandole {
namespace {

using ::farandole::testing::AgentTest;
using ::farandole::testing::FakeDriver;
using ::farandole::testing::Fill;
using ::farandole::testing::FillAlone;
using ::farandole::testing::FindExit;
using ::farandole::testing::IsOk;
using ::farandole::testing::kErr;
using ::farandole::testing::kOut;
using ::farandole::testing::kWorkers;
using ::farandole::testing::Messages;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(AgentTest, RegistersShowsThatItIsAliveAndEndsWhenTold) {
  StartAgent();
  const v1::Register said = driver_->Messages().at(0).register_();
  EXPECT_EQ(said.protocol_min(), 1u);
  EXPECT_EQ(said.protocol_max(), 1u);
  EXPECT_EQ(said.job(), "job");
  EXPECT_EQ(said.host(), "a");
  EXPECT_EQ(said.incarnation(), 77u);
  EXPECT_EQ(said.version(), kVersion);
  EXPECT_EQ(static_cast<pid_t>(said.pid()), agent_->pid());
  EXPECT_TRUE(std::any_of(said.addresses().begin(), said.addresses().end(), [](const v1::HostAddress& one) {
    return one.interface() == "lo" && one.address() == "127.0.0.1" && one.prefix_length() == 8;
  })) << said.ShortDebugString();
  EXPECT_EQ(driver_->Heartbeats(), 0);
  Welcome(1 << 20);
  EXPECT_TRUE(driver_->AwaitHeartbeats(3));
  // A terminal's signals are the launcher's.
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT}) agent_->Signal(signal);
  EXPECT_TRUE(driver_->AwaitHeartbeats(driver_->Heartbeats() + 2));
  EndAndExpectZero();
}

TEST_F(AgentTest, ArgumentsAndEnvironmentArriveByteForByte) {
  StartAndWelcome();
  const std::string odd = "a b\n'\"$(x)\xff\\";
  const std::string script = "printf '%s|' \"$@\"; env -0 | grep -zv ^FARANDOLE_";
  Spawn(0, {"sh", "-c", script, "sh", odd, ""},
        {"PATH=/usr/bin:/bin", "FARANDOLE_WORKER=another", "ODD= " + odd, "EMPTY="}, "/usr");
  Spawn(1, {"sh", "-c", "pwd; env | grep ^FARANDOLE_ | sort; readlink /proc/self/fd/0"},
        {"FARANDOLE_WORKER=another", "PATH=/usr/bin:/bin"}, "/usr");
  ASSERT_TRUE(AwaitOutputEnded(0));
  ASSERT_TRUE(AwaitOutputEnded(1));
  const std::string zero(1, '\0');
  EXPECT_THAT(driver_->Output(0, kOut), StartsWith(odd + "||"));
  EXPECT_THAT(driver_->Output(0, kOut), HasSubstr("ODD= " + odd + zero));
  EXPECT_THAT(driver_->Output(0, kOut), HasSubstr("EMPTY=" + zero));
  EXPECT_THAT(driver_->Output(1, kOut), StartsWith("/usr\nFARANDOLE_AGENT=unix-abstract:farandole-"));
  EXPECT_THAT(driver_->Output(1, kOut),
              HasSubstr("\nFARANDOLE_DATA_ADDRESS=127.0.0.1\nFARANDOLE_WORKER=0000000000000065\n/dev/null\n"));
  EndAndExpectZero();
}

TEST_F(AgentTest, TellsHowEveryWorkerEnded) {
  StartAndWelcome();
  SpawnShell(0, "exit 3");
  SpawnShell(1, "kill -ABRT $$");
  SpawnShell(2, "echo here; sleep 1000");
  SpawnShell(3, "trap 'echo saved; exit 4' TERM; echo here; while :; do wait; done");
  Spawn(4, {"no-such-program"}, {"PATH=/nowhere:/usr/bin"}, "/");
  Spawn(5, {"true"}, {"PATH=/usr/bin"}, "/no/such/folder");
  AwaitLines(2, 1);
  AwaitLines(3, 1);
  Signal(2, SIGKILL);
  Signal(3, SIGTERM);
  for (const uint32_t slot : {0, 1, 2, 3}) ASSERT_TRUE(AwaitOutputEnded(slot));
  EXPECT_EQ(Status(0).code(), 3u);
  EXPECT_EQ(Status(1).signal(), static_cast<uint32_t>(SIGABRT));
  EXPECT_EQ(Status(2).signal(), static_cast<uint32_t>(SIGKILL));
  EXPECT_EQ(Status(3).code(), 4u);
  EXPECT_EQ(driver_->Output(3, kOut), "here\nsaved\n");
  std::vector<v1::WorkerStartFailed> failed;
  ASSERT_TRUE(driver_->Await([&](const Messages& messages) {
    failed.clear();
    for (const v1::AgentMessage& message : messages) {
      if (message.has_worker_start_failed()) failed.push_back(message.worker_start_failed());
    }
    return failed.size() == 2;
  }));
  std::sort(failed.begin(), failed.end(),
            [](const auto& a, const auto& b) { return a.worker().slot() < b.worker().slot(); });
  EXPECT_EQ(failed[0].worker().slot(), 4u);
  EXPECT_EQ(failed[0].error(), static_cast<uint32_t>(ENOENT));
  EXPECT_EQ(failed[0].what(), "no-such-program (searched in PATH: /nowhere:/usr/bin)");
  EXPECT_EQ(failed[1].what(), "working folder /no/such/folder");
  Signal(0, SIGKILL);  // long gone: nothing happens
  EndAndExpectZero();
  // Each worker's messages came in the order of its life.
  for (const uint32_t slot : {0, 1, 2, 3}) {
    std::string order;
    for (const v1::AgentMessage& message : driver_->Messages()) {
      if (message.worker_started().worker().incarnation() == kWorkers + slot) order += 's';
      if (message.worker_exited().worker().incarnation() == kWorkers + slot) order += 'x';
      if (message.output_ended().worker().incarnation() == kWorkers + slot) order += 'e';
    }
    EXPECT_EQ(order, "sxe") << slot;
  }
}

TEST_F(AgentTest, AChattyWorkerWaitsForCreditAndLosesNothingWhileOthersGoOn) {
  StartAndWelcome(64 << 10);
  constexpr int kLines = 2'700'000;  // 20 MB
  SpawnShell(0, absl::StrCat("seq ", kLines));
  // All of the credit is used up to the last line that fits, and no more comes.
  ASSERT_TRUE(driver_->Await([&](const Messages& messages) {
    size_t size = 0;
    for (const v1::AgentMessage& message : messages) size += message.output().data().size();
    return size > (64 << 10) - 8;
  }));
  SpawnShell(1, "exit 9");
  ASSERT_TRUE(AwaitExit(1));
  ASSERT_TRUE(driver_->AwaitHeartbeats(driver_->Heartbeats() + 3));
  EXPECT_LE(driver_->Output(0, kOut).size(), size_t{64} << 10);
  EXPECT_EQ(FindExit(driver_->Messages(), 0), nullptr) << "it waits in write(2)";
  driver_->GiveBackCredit();
  ASSERT_TRUE(AwaitOutputEnded(0));
  std::string expected;
  for (int i = 1; i <= kLines; ++i) absl::StrAppend(&expected, i, "\n");
  EXPECT_TRUE(driver_->Output(0, kOut) == expected)
      << "of " << expected.size() << " bytes came " << driver_->Output(0, kOut).size();
  EndAndExpectZero();
}

TEST_F(AgentTest, LinesOfTwoWorkersAndStreamsStayWhole) {
  StartAndWelcome(8 << 10);
  driver_->GiveBackCredit();
  for (const uint32_t slot : {0, 1}) {
    SpawnShell(slot, "i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i + 1)); done");
  }
  for (const uint32_t slot : {0, 1}) ASSERT_TRUE(AwaitOutputEnded(slot));
  for (const v1::AgentMessage& message : driver_->Messages()) {
    if (!message.has_output()) continue;
    ASSERT_TRUE(absl::EndsWith(message.output().data(), "\n"));
    ASSERT_THAT(message.output().data(), StartsWith(message.output().stream() == kOut ? "out " : "err "));
  }
  EXPECT_EQ(driver_->Output(0, kOut).size(), driver_->Output(1, kErr).size());
  EXPECT_THAT(driver_->Output(1, kErr), ::testing::EndsWith("\nerr 2999\n"));
  EndAndExpectZero();
}

TEST_F(AgentTest, ADriverThatRefusesItOrMakesNoSenseEndsIt) {
  StartAgent();
  driver_->EndStream(static_cast<int>(grpc::StatusCode::NOT_FOUND), "no host a in this job");
  EXPECT_EQ(agent_->Wait(), 1);
  driver_ = FakeDriver::Start();
  StartAndWelcome();
  Spawn(0, {}, {}, "/");
  EXPECT_EQ(agent_->Wait(), 1);
}

TEST_F(AgentTest, WorkersListenWhereTheDriverSays) {
  StartAndWelcome();
  v1::DriverMessage message;
  Fill(0, message.mutable_spawn()->mutable_worker());
  FillAlone(message.mutable_spawn()->mutable_placement());
  for (const char* argument : {"/bin/sh", "-c", "echo $FARANDOLE_DATA_ADDRESS"}) {
    message.mutable_spawn()->add_arguments(argument);
  }
  message.mutable_spawn()->set_working_directory("/");
  for (const char* address : {"10.0.0.1", "fd00::1"}) message.mutable_spawn()->add_data_addresses(address);
  driver_->Send(message);
  ASSERT_TRUE(AwaitOutputEnded(0));
  EXPECT_EQ(driver_->Output(0, kOut), "10.0.0.1,fd00::1\n");
  EndAndExpectZero();
}

// The test plays the library of a worker, which lends it its name.
TEST_F(AgentTest, AWorkersLibraryJoinsGetsItsPlaceSharesMemoryAndLeaves) {
  StartAndWelcome();
  SpawnShell(0, "echo $FARANDOLE_AGENT; trap 'exit 0' TERM; while :; do wait; done");
  const std::string address = AwaitLines(0, 1)[0];
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<grpc::Channel> channel, ConnectUnix(address));
  const std::unique_ptr<v1::WorkerService::Stub> stub = v1::WorkerService::NewStub(channel);
  grpc::ClientContext join_context;
  v1::JoinRequest join;
  v1::JoinReply reply;
  join.set_protocol_min(1);
  join.set_protocol_max(1);
  join.set_incarnation(kWorkers);
  join.set_endpoint("127.0.0.1:4711");
  ASSERT_TRUE(stub->Join(&join_context, join, &reply).ok());
  EXPECT_EQ(reply.worker().host(), "a");
  EXPECT_EQ(reply.job_key(), std::string(32, 'k'));
  ASSERT_TRUE(driver_->Await([](const Messages& messages) { return messages.back().has_worker_joined(); }));
  EXPECT_EQ(driver_->Messages().back().worker_joined().endpoint(), "127.0.0.1:4711");

  grpc::ClientContext watch_context;
  v1::WatchAssignmentsRequest watch;
  watch.set_incarnation(kWorkers);
  const auto reader = stub->WatchAssignments(&watch_context, watch);
  v1::DriverMessage message;
  message.mutable_assignment()->set_generation(1);
  v1::Member* member = message.mutable_assignment()->add_members();
  Fill(0, member->mutable_worker());
  FillAlone(member->mutable_placement());
  member->set_endpoint("127.0.0.1:4711");
  driver_->Send(message);
  v1::Assignment assignment;
  ASSERT_TRUE(reader->Read(&assignment));
  EXPECT_EQ(assignment.SerializeAsString(), message.assignment().SerializeAsString());

  const std::unique_ptr<SlabSource> slabs = ConnectSlabs(reply.slab_socket());
  EXPECT_OK(slabs->Open("1/x", 4096, Now() + absl::Seconds(30)));
  EXPECT_THAT(slabs->Open("1/x", 8192, Now() + absl::Seconds(30)),
              ::farandole::testing::StatusIs(absl::StatusCode::kInvalidArgument));
  message.mutable_assignment()->set_generation(2);
  driver_->Send(message);
  ASSERT_TRUE(reader->Read(&assignment));
  EXPECT_OK(slabs->Open("1/x", 8192, Now() + absl::Seconds(30))) << "what belonged to generation 1 is forgotten";

  grpc::ClientContext report_context, leave_context;
  v1::ReportRequest report;
  v1::ReportReply report_reply;
  report.set_incarnation(kWorkers);
  report.set_text("rank 1 is gone");
  ASSERT_TRUE(stub->Report(&report_context, report, &report_reply).ok());
  v1::LeaveRequest leave;
  v1::LeaveReply leave_reply;
  leave.set_incarnation(kWorkers);
  leave.set_generation(2);
  ASSERT_TRUE(stub->Leave(&leave_context, leave, &leave_reply).ok());
  Signal(0, SIGTERM);
  ASSERT_TRUE(AwaitExit(0));
  const Messages messages = driver_->Messages();
  const auto kind = [&](int from_exit) {
    int at = 0;
    while (!messages[at].has_worker_exited()) ++at;
    return messages[at - from_exit].message_case();
  };
  EXPECT_EQ(kind(1), v1::AgentMessage::kWorkerLeft);
  EXPECT_EQ(kind(2), v1::AgentMessage::kWorkerNotice);

  SendEnd();
  EXPECT_FALSE(reader->Read(&assignment));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(agent_->Wait(), 0);
}

}  // namespace
}  // namespace farandole
