#include "driver/service/agent_service.h"

#include <csignal>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/events.h"
#include "driver/core/host_step.h"
#include "driver/core/ids.h"
#include "driver/core/worker_command.h"
#include "driver/security/job_authority.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/convert/driver_convert.h"
#include "proto/rpc/tls_dialer.h"
#include "proto/rpc/tls_names.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "tools/base/clock.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const AgentIdentity kAgent{"a", Incarnation(5)};
const WorkerId kWorker{SlotId{"a", 0}, Incarnation(7)};
constexpr absl::Duration kPatience = absl::Seconds(20);

// Keeps what the service passes on, as lines.
class Recorder final : public AgentListener {
 public:
  void OnEvent(Event event) override {
    if (const auto* ready = std::get_if<AgentReady>(&event)) {
      {
        MutexLock lock(&mutex_);
        addresses_ = ready->addresses;
      }
      Add(absl::StrCat("ready ", ready->host));
    } else if (std::holds_alternative<AgentHeard>(event)) {
      Add("heard");
    } else if (const auto* failed = std::get_if<AgentFailed>(&event)) {
      Add(absl::StrCat("failed ", failed->host, ": ", failed->reason));
    } else if (const auto* ended = std::get_if<AgentEnded>(&event)) {
      Add(absl::StrCat("ended ", ended->host));
    } else if (const auto* exited = std::get_if<WorkerExited>(&event)) {
      Add(absl::StrCat("exit ", exited->status.code));
    } else if (const auto* progress = std::get_if<AgentProgress>(&event)) {
      Add(absl::StrCat(ToString(progress->step), " ", progress->host, ": ", progress->note));
    } else {
      Add("another event");
    }
  }
  void OnOutput(const AgentIdentity& from, OutputPiece piece) override {
    Add(absl::StrCat(from.host, " output ", piece.data));
  }
  void OnOutputEnd(OutputEnd end) override { Add("output end"); }
  void OnNotice(NoticeForPeople notice) override { Add(absl::StrCat("notice ", notice.text)); }

  // The next line; "(nothing)" if there is none for too long.
  std::string Next() {
    MutexLock lock(&mutex_);
    if (!changed_.AwaitUntil(&mutex_, Now() + kPatience,
                             [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !lines_.empty(); })) {
      return "(nothing)";
    }
    const std::string line = lines_.front();
    lines_.pop_front();
    return line;
  }
  bool empty() {
    MutexLock lock(&mutex_);
    return lines_.empty();
  }
  std::vector<OfferedAddress> addresses() {
    MutexLock lock(&mutex_);
    return addresses_;
  }

 private:
  void Add(std::string line) {
    MutexLock lock(&mutex_);
    lines_.push_back(std::move(line));
    changed_.NotifyAll();
  }
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  std::vector<OfferedAddress> addresses_ ABSL_GUARDED_BY(mutex_);  // of the agent that was ready last
};

// The other end of a stream.
class Agent {
 public:
  explicit Agent(const std::shared_ptr<grpc::Channel>& channel) {
    stub_ = v1::AgentService::NewStub(channel);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stream_ = stub_->Connect(&context_);
  }
  ~Agent() {
    context_.TryCancel();
    if (!finished_) Finish();
  }

  void Register(const AgentIdentity& as, const std::string& job = "job", uint32_t protocol = 1) {
    v1::AgentMessage message;
    v1::Register* hello = message.mutable_register_();
    hello->set_protocol_min(protocol);
    hello->set_protocol_max(protocol);
    hello->set_job(job);
    hello->set_host(as.host);
    hello->set_incarnation(as.incarnation.value());
    v1::HostAddress* address = hello->add_addresses();
    address->set_interface("eth0");
    address->set_address("10.0.0.1");
    address->set_prefix_length(24);
    Say(message);
  }
  void Say(const v1::AgentMessage& message) { stream_->Write(message); }
  void SayOutput(const std::string& data) {
    v1::AgentMessage message;
    message.mutable_output()->mutable_worker()->set_host("a");
    message.mutable_output()->mutable_worker()->set_incarnation(7);
    message.mutable_output()->set_stream(v1::Output::STDOUT);
    message.mutable_output()->set_data(data);
    Say(message);
  }
  // The next message of the driver, without its spaces; "(end)" if there is none.
  std::string Hear() {
    v1::DriverMessage message;
    return Read(&message) ? message.ShortDebugString() : "(end)";
  }
  bool Read(v1::DriverMessage* message) { return stream_->Read(message); }
  void HangUp() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() {
    finished_ = true;
    v1::DriverMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }

 private:
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DriverMessage>> stream_;
  bool finished_ = false;
};

class AgentServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(authority_, JobAuthority::Create("job"));
    Start(nullptr);
  }

  void Start(std::shared_ptr<const std::string> worker_input) {
    AgentServiceOptions options{"job", absl::Milliseconds(250), /*output_window=*/10};
    options.authority = authority_.get();
    options.worker_input = std::move(worker_input);
    ASSERT_OK_AND_ASSIGN(service_, AgentService::Start(options, &recorder_));
    service_->Expect(kAgent);
  }

  std::unique_ptr<Agent> Dial() {
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = ConnectUnix(service_->address());
    EXPECT_OK(channel);
    return std::make_unique<Agent>(*channel);
  }
  // From elsewhere, with the certificate of `agent`.
  std::unique_ptr<Agent> DialTls(const AgentIdentity& agent) {
    const absl::StatusOr<std::string> endpoint = service_->Listen("127.0.0.1");
    const absl::StatusOr<TlsIdentity> identity = authority_->IssueAgent(agent.host, agent.incarnation);
    EXPECT_OK(endpoint);
    EXPECT_OK(identity);
    const absl::StatusOr<Dialled> dialled =
        DialFirst({*endpoint}, {*identity, DriverTlsName("job")}, Now() + kPatience);
    EXPECT_OK(dialled);
    return std::make_unique<Agent>(dialled->channel);
  }
  std::unique_ptr<Agent> Registered() {
    std::unique_ptr<Agent> agent = Dial();
    agent->Register(kAgent);
    EXPECT_THAT(agent->Hear(), HasSubstr("welcome"));
    EXPECT_EQ(recorder_.Next(), "ready a");
    return agent;
  }
  grpc::Status Refusal(const AgentIdentity& as, const std::string& job = "job", uint32_t protocol = 1) {
    std::unique_ptr<Agent> agent = Dial();
    agent->Register(as, job, protocol);
    return agent->Finish();
  }

  Recorder recorder_;                        // outlives the service
  std::unique_ptr<JobAuthority> authority_;  // the same
  std::unique_ptr<AgentService> service_;
};

TEST_F(AgentServiceTest, AnExpectedAgentIsWelcome) {
  std::unique_ptr<Agent> agent = Dial();
  agent->Register(kAgent);
  EXPECT_EQ(agent->Hear(), "welcome { protocol: 1 heartbeat_interval { nanos: 250000000 } output_credit: 10 }");
  EXPECT_EQ(recorder_.Next(), "ready a");
}

TEST_F(AgentServiceTest, AnAgentIsReadyWhenItHasWhatItsWorkersRead) {
  std::string input(600'000, '\0');
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * i >> 5);
  Start(std::make_shared<const std::string>(input));
  std::unique_ptr<Agent> agent = Dial();
  agent->Register(kAgent);
  EXPECT_THAT(agent->Hear(), HasSubstr("welcome"));
  EXPECT_EQ(recorder_.Next(), "call back a: it has called back and is being sent what its workers read");
  v1::DriverMessage message;
  std::string heard;
  while (heard.size() < input.size() && agent->Read(&message)) {
    ASSERT_TRUE(message.has_input()) << message.ShortDebugString();
    EXPECT_LE(message.input().data().size(), kMaxInputPiece);
    heard += message.input().data();
  }
  EXPECT_TRUE(heard == input);
  EXPECT_EQ(recorder_.Next(), "ready a");
  service_->Spawn({kWorker, {}, "r"}, WorkerCommand{{"true"}, {}, "/"});
  EXPECT_THAT(agent->Hear(), HasSubstr("has_input: true"));
}

TEST_F(AgentServiceTest, AnAgentIsToldToEndWithoutTheRestOfWhatItsWorkersRead) {
  constexpr size_t kSize = 64 << 20;  // far above what lies between a writer and a reader who does not read
  Start(std::make_shared<const std::string>(kSize, 'x'));
  std::unique_ptr<Agent> agent = Dial();
  agent->Register(kAgent);
  EXPECT_THAT(recorder_.Next(), StartsWith("call back a"));
  service_->End({"a", kAgent.incarnation, false, "done"});
  EXPECT_THAT(agent->Hear(), HasSubstr("welcome"));
  v1::DriverMessage message;
  size_t heard = 0;
  while (agent->Read(&message) && !message.has_end()) heard += message.input().data().size();
  EXPECT_TRUE(message.has_end());
  EXPECT_LT(heard, kSize);
  agent->HangUp();
  EXPECT_EQ(recorder_.Next(), "ended a");
}

TEST_F(AgentServiceTest, AnEmptyInputIsAnInput) {
  Start(std::make_shared<const std::string>());
  std::unique_ptr<Agent> agent = Registered();
  service_->Spawn({kWorker, {}, "r"}, WorkerCommand{{"true"}, {}, "/"});
  EXPECT_THAT(agent->Hear(), HasSubstr("has_input: true"));
}

TEST_F(AgentServiceTest, OthersAreRefusedWithTheReason) {
  EXPECT_EQ(Refusal({"b", kAgent.incarnation}).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Refusal({"a", Incarnation(6)}).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Refusal(kAgent, "another job").error_code(), grpc::StatusCode::NOT_FOUND);
  const grpc::Status protocol = Refusal(kAgent, "job", 2);
  EXPECT_EQ(protocol.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(protocol.error_message(), HasSubstr("speaks protocol 2 to 2, the driver 1 to 1"));
  std::unique_ptr<Agent> silent = Dial();
  silent->Say(v1::AgentMessage());
  EXPECT_EQ(silent->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(recorder_.empty()) << recorder_.Next();
}

TEST_F(AgentServiceTest, AHostHasOneAgent) {
  std::unique_ptr<Agent> agent = Registered();
  EXPECT_EQ(Refusal(kAgent).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  v1::AgentMessage heartbeat;
  heartbeat.mutable_heartbeat();
  agent->Say(heartbeat);
  EXPECT_EQ(recorder_.Next(), "heard");
}

TEST_F(AgentServiceTest, CommandsArriveInTheirOrder) {
  std::unique_ptr<Agent> agent = Registered();
  service_->Spawn({kWorker, {}, "r"}, WorkerCommand{{"true"}, {}, "/"});
  service_->Assign({Generation(1), {{kWorker, {}, "e"}}, "r"});
  service_->Signal({kWorker, SIGTERM, "r"});
  EXPECT_TRUE(service_->End({"a", kAgent.incarnation, false, "done"}));
  EXPECT_THAT(agent->Hear(), HasSubstr("arguments: \"true\""));
  EXPECT_THAT(agent->Hear(), HasSubstr("assignment { generation: 1"));
  EXPECT_THAT(agent->Hear(), HasSubstr("signal: 15"));
  EXPECT_EQ(agent->Hear(), "end { reason: \"done\" }");
}

TEST_F(AgentServiceTest, WhatAnAgentSaysIsPassedOnInItsOrder) {
  std::unique_ptr<Agent> agent = Registered();
  agent->SayOutput("one");
  v1::AgentMessage exited;
  exited.mutable_worker_exited()->mutable_worker()->set_host("a");
  exited.mutable_worker_exited()->mutable_worker()->set_incarnation(7);
  exited.mutable_worker_exited()->mutable_status()->set_code(3);
  agent->Say(exited);
  agent->SayOutput("two");
  EXPECT_EQ(recorder_.Next(), "a output one");
  EXPECT_EQ(recorder_.Next(), "exit 3");
  EXPECT_EQ(recorder_.Next(), "a output two");
}

TEST_F(AgentServiceTest, AnAgentThatWasToldToEndAndHangsUpHasEnded) {
  std::unique_ptr<Agent> agent = Registered();
  service_->End({"a", kAgent.incarnation, false, "done"});
  EXPECT_THAT(agent->Hear(), HasSubstr("end"));
  agent->HangUp();
  EXPECT_TRUE(agent->Finish().ok());
  EXPECT_EQ(recorder_.Next(), "ended a");
  EXPECT_EQ(Refusal(kAgent).error_code(), grpc::StatusCode::NOT_FOUND) << "an incarnation does not come back";
}

TEST_F(AgentServiceTest, AnAgentThatHangsUpUnaskedHasFailed) {
  Registered()->HangUp();
  EXPECT_EQ(recorder_.Next(), "failed a: its connection to the driver was closed");
}

TEST_F(AgentServiceTest, ALostConnectionIsAFailedAgent) {
  Registered()->Cancel();
  EXPECT_EQ(recorder_.Next(), "failed a: its connection to the driver was closed");
}

TEST_F(AgentServiceTest, AMalformedMessageEndsTheStreamAndNamesTheField) {
  std::unique_ptr<Agent> agent = Registered();
  v1::AgentMessage message;
  message.mutable_worker_left()->mutable_worker()->set_host("a");
  agent->Say(message);
  EXPECT_THAT(recorder_.Next(), HasSubstr("worker_left: worker: incarnation is zero"));
  EXPECT_EQ(agent->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AgentServiceTest, OutputIsBoundedByTheCredit) {
  std::unique_ptr<Agent> agent = Registered();
  agent->SayOutput("0123456789");
  EXPECT_EQ(recorder_.Next(), "a output 0123456789");
  service_->ReturnCredit(kAgent, 4);
  EXPECT_EQ(agent->Hear(), "output_credit { bytes: 4 }");
  agent->SayOutput("0123");
  EXPECT_EQ(recorder_.Next(), "a output 0123");
  agent->SayOutput("x");
  EXPECT_THAT(recorder_.Next(), HasSubstr("output: 11 bytes are on the way, and 10 were allowed"));
}

TEST_F(AgentServiceTest, ADroppedAgentIsCutOff) {
  std::unique_ptr<Agent> agent = Registered();
  service_->Drop(kAgent);
  EXPECT_EQ(agent->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(AgentServiceTest, AnAgentThatIsNotThereCannotBeToldToEndAndIsNotLetInLater) {
  EXPECT_FALSE(service_->End({"a", kAgent.incarnation, false, "done"}));
  EXPECT_EQ(Refusal(kAgent).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AgentServiceTest, AnAgentFromElsewhereIsWhoItsCertificateSays) {
  std::unique_ptr<Agent> agent = DialTls(kAgent);
  agent->Register(kAgent);
  EXPECT_THAT(agent->Hear(), HasSubstr("welcome"));
  EXPECT_EQ(recorder_.Next(), "ready a");
  EXPECT_THAT(recorder_.addresses(), ElementsAre(OfferedAddress{"eth0", "10.0.0.1", 24}));
  service_->Spawn({kWorker, {}, "r"}, WorkerCommand{{"true"}, {}, "/"});
  EXPECT_THAT(agent->Hear(), HasSubstr("arguments: \"true\""));
  agent->SayOutput("one");
  EXPECT_EQ(recorder_.Next(), "a output one");
  const AgentServiceStats stats = service_->stats();
  EXPECT_THAT(stats.listening, ElementsAre(service_->address(), StartsWith("127.0.0.1:")));
  EXPECT_EQ(stats.tls.accepted, 1);
  EXPECT_EQ(stats.tls.proved, 1);
}

TEST_F(AgentServiceTest, ACertificateOfAnotherAgentIsNotGoodEnough) {
  for (const AgentIdentity& other : {AgentIdentity{"b", kAgent.incarnation}, AgentIdentity{"a", Incarnation(6)}}) {
    std::unique_ptr<Agent> agent = DialTls(other);
    agent->Register(kAgent);
    const grpc::Status status = agent->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), HasSubstr("has the certificate of farandole:job/agent/" + other.host));
  }
  EXPECT_TRUE(recorder_.empty()) << recorder_.Next();
  Registered();
}

TEST_F(AgentServiceTest, WithoutAnAuthorityNobodyComesFromElsewhere) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<AgentService> local,
                       AgentService::Start({"job", absl::Milliseconds(250)}, &recorder_));
  EXPECT_THAT(local->Listen("127.0.0.1"), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(local->stats().listening, ElementsAre(local->address()));
}

TEST_F(AgentServiceTest, ShutdownEndsAgentsFromElsewhereToo) {
  std::unique_ptr<Agent> agent = DialTls(kAgent);
  agent->Register(kAgent);
  EXPECT_EQ(recorder_.Next(), "ready a");
  service_->Shutdown(Now());
  EXPECT_EQ(recorder_.Next(), "failed a: its connection to the driver was closed");
  EXPECT_THAT(service_->Listen("127.0.0.1"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(AgentServiceTest, ShutdownTakesWhatIsStillSaid) {
  std::unique_ptr<Agent> agent = Registered();
  std::unique_ptr<Agent> stranger = Dial();  // never says who it is, and holds nobody up
  agent->SayOutput("last");
  agent->HangUp();
  service_->Shutdown(Instant::Infinite());
  EXPECT_EQ(recorder_.Next(), "a output last");
  EXPECT_EQ(recorder_.Next(), "failed a: its connection to the driver was closed");
}

TEST_F(AgentServiceTest, ShutdownCutsOffWhoDoesNotHangUp) {
  std::unique_ptr<Agent> agent = Registered();
  service_->Shutdown(Now());
  EXPECT_EQ(recorder_.Next(), "failed a: its connection to the driver was closed");
}

}  // namespace
}  // namespace farandole
