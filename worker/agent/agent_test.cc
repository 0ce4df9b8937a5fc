// The real agent program, with the test as its starter, its driver and its workers' libraries.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/agent_service.pb.h"
#include "proto/v1/bootstrap.pb.h"
#include "proto/v1/worker_service.grpc.pb.h"
#include "tools/base/clock.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/version.h"
#include "worker/agent/slab_client.h"
#include "worker/agent/testing/agent_process.h"
#include "worker/agent/testing/fake_driver.h"

namespace farandole {
namespace {

using ::farandole::testing::AgentProcess;
using ::farandole::testing::Ends;
using ::farandole::testing::FakeDriver;
using ::farandole::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr v1::Output::Stream kOut = v1::Output::STDOUT;
constexpr v1::Output::Stream kErr = v1::Output::STDERR;
constexpr uint64_t kWorkers = 100;  // the worker in slot n has incarnation kWorkers + n

using Messages = std::vector<v1::AgentMessage>;

const v1::WorkerExited* FindExit(const Messages& messages, uint32_t slot) {
  for (const v1::AgentMessage& message : messages) {
    if (message.has_worker_exited() && message.worker_exited().worker().slot() == slot) return &message.worker_exited();
  }
  return nullptr;
}

bool HasOutputEnded(const Messages& messages, uint32_t slot) {
  return std::any_of(messages.begin(), messages.end(), [slot](const v1::AgentMessage& message) {
    return message.has_output_ended() && message.output_ended().worker().slot() == slot;
  });
}

void Fill(uint32_t slot, v1::WorkerId* worker) {
  worker->set_host("a");
  worker->set_slot(slot);
  worker->set_incarnation(kWorkers + slot);
}

void FillAlone(v1::Placement* place) {
  place->set_size(1);
  place->set_local_size(1);
  place->set_cross_size(1);
}

class AgentTest : public ::testing::Test {
 protected:
  // Orphans of a killed agent come here, as they come to a launcher, so that none survives the test.
  static void SetUpTestSuite() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  // Starts the agent and waits for its first message.
  void StartAgent() {
    v1::AgentBootstrap bootstrap;
    bootstrap.set_job("job");
    bootstrap.set_host("a");
    bootstrap.set_incarnation(77);
    bootstrap.set_driver_address(driver_->address());
    bootstrap.set_job_key(std::string(32, 'k'));
    bootstrap.set_data_address("127.0.0.1");
    bootstrap.mutable_grace()->set_nanos(200'000'000);
    agent_ = std::make_unique<AgentProcess>(bootstrap.SerializeAsString());
    ASSERT_TRUE(driver_->Await([](const Messages& messages) { return !messages.empty(); }));
  }

  void Welcome(uint64_t credit) {
    v1::DriverMessage message;
    message.mutable_welcome()->set_protocol(1);
    message.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(20'000'000);
    message.mutable_welcome()->set_output_credit(credit);
    driver_->Send(message);
  }

  void StartAndWelcome(uint64_t credit = 1 << 20) {
    StartAgent();
    Welcome(credit);
  }

  void Spawn(uint32_t slot, std::vector<std::string> arguments, const std::vector<std::string>& environment,
             const std::string& folder) {
    v1::DriverMessage message;
    v1::Spawn* spawn = message.mutable_spawn();
    Fill(slot, spawn->mutable_worker());
    FillAlone(spawn->mutable_placement());
    for (std::string& argument : arguments) spawn->add_arguments(std::move(argument));
    for (const std::string& variable : environment) spawn->add_environment(variable);
    spawn->set_working_directory(folder);
    driver_->Send(message);
  }

  void SpawnShell(uint32_t slot, const std::string& script) {
    Spawn(slot, {"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, "/");
  }

  void Signal(uint32_t slot, int signal) {
    v1::DriverMessage message;
    Fill(slot, message.mutable_signal()->mutable_worker());
    message.mutable_signal()->set_signal(signal);
    driver_->Send(message);
  }

  void Grant(uint64_t bytes) {
    v1::DriverMessage message;
    message.mutable_output_credit()->set_bytes(bytes);
    driver_->Send(message);
  }

  void SendEnd() {
    v1::DriverMessage message;
    message.mutable_end()->set_reason("the test is over");
    driver_->Send(message);
  }

  void EndAndExpectZero() {
    SendEnd();
    EXPECT_TRUE(driver_->AwaitStreamEnd());
    EXPECT_EQ(agent_->Wait(), 0);
  }

  bool AwaitExit(uint32_t slot) {
    return driver_->Await([&](const Messages& messages) { return FindExit(messages, slot) != nullptr; });
  }
  bool AwaitOutputEnded(uint32_t slot) {
    return driver_->Await([&](const Messages& messages) { return HasOutputEnded(messages, slot); });
  }
  v1::ExitStatus Status(uint32_t slot) {
    const Messages messages = driver_->Messages();
    const v1::WorkerExited* exit = FindExit(messages, slot);
    return exit == nullptr ? v1::ExitStatus() : exit->status();
  }

  // The first `count` lines of the worker's standard output, once they are there.
  std::vector<std::string> AwaitLines(uint32_t slot, size_t count) {
    std::vector<std::string> lines;
    EXPECT_TRUE(driver_->Await([&](const Messages& messages) {
      std::string text;
      for (const v1::AgentMessage& message : messages) {
        if (message.has_output() && message.output().worker().slot() == slot) text += message.output().data();
      }
      lines = absl::StrSplit(text, '\n');
      return lines.size() > count;
    }));
    lines.resize(count);
    return lines;
  }
  std::vector<pid_t> AwaitPids(uint32_t slot, size_t count) {
    std::vector<pid_t> pids;
    for (const std::string& line : AwaitLines(slot, count)) {
      int pid = 0;
      EXPECT_TRUE(absl::SimpleAtoi(line, &pid)) << line;
      pids.push_back(pid);
    }
    return pids;
  }

  std::unique_ptr<FakeDriver> driver_ = FakeDriver::Start();
  std::unique_ptr<AgentProcess> agent_;
};

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

// A worker that ignores TERM, with a helper in its group and a daemon in another session that ignore it too; their
// numbers.
constexpr char kStubborn[] =
    "trap '' TERM HUP INT; echo $$; sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & wait; sleep 1000";

TEST_F(AgentTest, ALostDriverTakesEverythingWithIt) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  SpawnShell(1, "trap 'exit 0' TERM; while :; do wait; done");
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  driver_ = nullptr;
  EXPECT_EQ(agent_->Wait(), 1);
  for (const pid_t pid : pids) EXPECT_TRUE(Ends(pid)) << pid;
}

TEST_F(AgentTest, AClosedStandardInputTakesEverythingWithIt) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  agent_->CloseInput();
  EXPECT_EQ(agent_->Wait(), 1);
  for (const pid_t pid : pids) EXPECT_TRUE(Ends(pid)) << pid;
}

TEST_F(AgentTest, SigtermEndsItInOrderAndIsReported) {
  StartAndWelcome();
  SpawnShell(0, "trap 'echo saved; exit 6' TERM; echo here; while :; do wait; done");
  AwaitLines(0, 1);
  agent_->Signal(SIGTERM);
  EXPECT_TRUE(driver_->AwaitStreamEnd());
  EXPECT_EQ(agent_->Wait(), 1);
  EXPECT_EQ(Status(0).code(), 6u);
  EXPECT_EQ(driver_->Output(0, kOut), "here\nsaved\n");
  EXPECT_TRUE(HasOutputEnded(driver_->Messages(), 0));
}

TEST_F(AgentTest, AKilledAgentTakesItsWorkersWithIt) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  agent_->Signal(SIGKILL);
  EXPECT_EQ(agent_->Wait(), -SIGKILL);
  EXPECT_TRUE(Ends(pids[0])) << "the kernel's word";
  // What the worker itself had started has come to us, as it would to the launcher.
  for (const pid_t pid : {pids[1], pids[2]}) {
    EXPECT_EQ(::kill(pid, SIGKILL), 0);
    EXPECT_TRUE(Ends(pid));
    EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  }
}

TEST_F(AgentTest, TheEndFindsWhatHasLeftItsGroup) {
  StartAndWelcome();
  SpawnShell(0, "setsid sh -c 'echo $$; exec sleep 1000' & trap 'exit 0' TERM; while :; do wait; done");
  const pid_t daemon = AwaitPids(0, 1)[0];
  Signal(0, SIGTERM);
  ASSERT_TRUE(AwaitOutputEnded(0)) << "the daemon has the pipe, but not for long";
  EXPECT_EQ(::kill(daemon, 0), 0) << "it is not the worker, and the job goes on";
  EndAndExpectZero();
  EXPECT_TRUE(::kill(daemon, 0) != 0 && errno == ESRCH);
}

TEST_F(AgentTest, TheEndKillsAtOnceAndSendsWhatWasWritten) {
  StartAndWelcome();
  SpawnShell(0, kStubborn);
  const std::vector<pid_t> pids = AwaitPids(0, 3);
  EndAndExpectZero();
  EXPECT_EQ(Status(0).signal(), static_cast<uint32_t>(SIGKILL));
  EXPECT_TRUE(HasOutputEnded(driver_->Messages(), 0));
  for (const pid_t pid : pids) EXPECT_TRUE(::kill(pid, 0) != 0 && errno == ESRCH) << pid;
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
