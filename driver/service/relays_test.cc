// Relays by real agents, and by calls that no agent of ours would make.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/events.h"
#include "driver/security/job_authority.h"
#include "driver/service/agent_service.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/rpc/relay_pump.h"
#include "proto/rpc/tls_dialer.h"
#include "proto/rpc/tls_names.h"
#include "proto/v1/agent_service.grpc.pb.h"
#include "proto/v1/bootstrap.pb.h"
#include "tools/base/clock.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"
#include "worker/agent/testing/agent_process.h"

namespace farandole {
namespace {

using ::farandole::testing::AgentProcess;
using ::farandole::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);
const AgentIdentity kAgent{"a", Incarnation(5)};
const AgentIdentity kOther{"b", Incarnation(6)};

class Nobody final : public AgentListener {
 public:
  void OnEvent(Event) override {}
  void OnOutput(const AgentIdentity&, OutputPiece) override {}
  void OnOutputEnd(OutputEnd) override {}
  void OnNotice(NoticeForPeople) override {}
};

// A port of 127.0.0.1.
class Port {
 public:
  Port() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }
  int number() const { return number_; }
  void Listen() { EXPECT_EQ(::listen(fd_.get(), 16), 0); }
  UniqueFd Accept() { return UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  UniqueFd fd_;
  int number_ = 0;
};

bool WriteAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t size = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (size <= 0) return false;
    at += static_cast<size_t>(size);
  }
  return true;
}

// As many bytes, or as there are until the end; "(silence)" when nothing comes for too long.
std::string Read(int fd, size_t count) {
  std::string bytes;
  while (bytes.size() < count) {
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))) != 1) return "(silence)";
    char piece[1 << 16];
    const ssize_t size = ::recv(fd, piece, std::min(sizeof piece, count - bytes.size()), 0);
    if (size <= 0) break;
    bytes.append(piece, static_cast<size_t>(size));
  }
  return bytes;
}

// Gives back what one connection brings, and ends when that has ended.
class Echo {
 public:
  explicit Echo(Port* port) {
    port->Listen();
    thread_ = std::thread([port] {
      const UniqueFd stream = port->Accept();
      char piece[1 << 16];
      while (true) {
        const ssize_t size = ::recv(stream.get(), piece, sizeof piece, 0);
        if (size <= 0 || !WriteAll(stream.get(), std::string(piece, static_cast<size_t>(size)))) return;
      }
    });
  }
  ~Echo() { thread_.join(); }

 private:
  std::thread thread_;
};

class RelaysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(authority_, JobAuthority::Create("job"));
    AgentServiceOptions options;
    options.job = "job";
    options.heartbeat_interval = absl::Milliseconds(250);
    options.authority = authority_.get();
    ASSERT_OK_AND_ASSIGN(service_, AgentService::Start(options, &nobody_));
    ASSERT_OK_AND_ASSIGN(endpoint_, service_->Listen("127.0.0.1"));
    service_->Expect(kAgent);
  }

  using Result = std::future<absl::StatusOr<UniqueFd>>;
  Result Ask(const std::string& via, int port, Instant deadline = Now() + kPatience) {
    const auto answer = std::make_shared<std::promise<absl::StatusOr<UniqueFd>>>();
    service_->OpenRelay(via, "127.0.0.1", port, deadline,
                        [answer](absl::StatusOr<UniqueFd> result) { answer->set_value(std::move(result)); });
    return answer->get_future();
  }

  TlsIdentity IdentityOf(const AgentIdentity& agent) {
    absl::StatusOr<TlsIdentity> identity = authority_->IssueAgent(agent.host, agent.incarnation);
    EXPECT_OK(identity);
    return *std::move(identity);
  }

  void StartAgent() {
    const TlsIdentity identity = IdentityOf(kAgent);
    v1::AgentBootstrap bootstrap;
    bootstrap.set_job("job");
    bootstrap.set_host(kAgent.host);
    bootstrap.set_incarnation(kAgent.incarnation.value());
    bootstrap.add_driver_addresses(endpoint_);
    bootstrap.set_job_key(std::string(32, 'k'));
    bootstrap.set_data_address("127.0.0.1");
    bootstrap.mutable_grace()->set_seconds(1);
    bootstrap.set_ca_certificate(identity.ca_pem);
    bootstrap.set_certificate(identity.certificate_pem);
    bootstrap.set_private_key(identity.private_key_pem);
    agent_ = std::make_unique<AgentProcess>(bootstrap.SerializeAsString());
  }

  Nobody nobody_;
  std::unique_ptr<JobAuthority> authority_;
  std::unique_ptr<AgentService> service_;
  std::string endpoint_;
  std::unique_ptr<AgentProcess> agent_;
};

TEST_F(RelaysTest, CarriesEveryByteBothWaysAndTheEndOfEach) {
  Port port;
  const Echo echo(&port);
  Result result = Ask("a", port.number());  // the agent is yet to come
  StartAgent();
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, result.get());
  std::string sent(8 << 20, '\0');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 2654435761U >> 24);
  std::thread writer([&] {
    EXPECT_TRUE(WriteAll(stream.get(), sent));
    ::shutdown(stream.get(), SHUT_WR);
  });
  const std::string got = Read(stream.get(), sent.size() + 1);
  writer.join();
  EXPECT_EQ(got.size(), sent.size());
  EXPECT_TRUE(got == sent);
}

TEST_F(RelaysTest, SeveralAtATime) {
  Port slow, quick;
  slow.Listen();
  StartAgent();
  ASSERT_OK_AND_ASSIGN(const UniqueFd one, Ask("a", slow.number()).get());
  const UniqueFd deaf = slow.Accept();
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const std::string piece(1 << 16, 'x');
  while (::send(one.get(), piece.data(), piece.size(), flags) > 0) {
  }
  const Echo echo(&quick);
  ASSERT_OK_AND_ASSIGN(const UniqueFd two, Ask("a", quick.number()).get());
  EXPECT_TRUE(WriteAll(two.get(), "past the one that is full"));
  EXPECT_EQ(Read(two.get(), 25), "past the one that is full");
}

TEST_F(RelaysTest, TheTargetMayEndFirst) {
  Port port;
  port.Listen();
  StartAgent();
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, Ask("a", port.number()).get());
  UniqueFd target = port.Accept();
  EXPECT_TRUE(WriteAll(target.get(), "bye"));
  ::shutdown(target.get(), SHUT_WR);
  EXPECT_EQ(Read(stream.get(), 100), "bye");
  EXPECT_TRUE(WriteAll(stream.get(), "still here"));
  EXPECT_EQ(Read(target.get(), 10), "still here");
}

TEST_F(RelaysTest, WhoLetsGoOfItIsNoticedByTheTarget) {
  Port port;
  port.Listen();
  StartAgent();
  absl::StatusOr<UniqueFd> stream = Ask("a", port.number()).get();
  ASSERT_OK(stream);
  const UniqueFd target = port.Accept();
  EXPECT_TRUE(WriteAll(stream->get(), "last words"));
  stream->reset();
  EXPECT_EQ(Read(target.get(), 100), "last words");
}

TEST_F(RelaysTest, SaysWhatTheAgentMet) {
  Port closed;
  StartAgent();
  EXPECT_THAT(
      Ask("a", closed.number()).get(),
      StatusIs(absl::StatusCode::kUnavailable, absl::StrCat("to 127.0.0.1 port ", closed.number(),
                                                            " by way of host a: connecting: Connection refused")));
}

TEST_F(RelaysTest, NoAgentNoRelay) {
  EXPECT_THAT(Ask("b", 22).get(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("by way of host b: ")));
  Result result = Ask("a", 22);
  service_->Drop(kAgent);
  EXPECT_THAT(result.get(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("its agent is gone")));
  EXPECT_THAT(Ask("a", 22).get(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(RelaysTest, AnAgentThatDoesNotComeIsNotWaitedForForEver) {
  EXPECT_THAT(Ask("a", 22, Now()).get(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "to 127.0.0.1 port 22 by way of host a: the agent there did not answer in time"));
}

TEST_F(RelaysTest, AKilledAgentTakesItsRelaysWithIt) {
  Port port;
  port.Listen();
  StartAgent();
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, Ask("a", port.number()).get());
  const UniqueFd target = port.Accept();
  agent_->Signal(SIGKILL);
  EXPECT_EQ(Read(stream.get(), 1), "");
  EXPECT_EQ(Read(target.get(), 1), "");
}

TEST_F(RelaysTest, ADroppedAgentHasNone) {
  Port port;
  port.Listen();
  StartAgent();
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, Ask("a", port.number()).get());
  const UniqueFd target = port.Accept();
  service_->Drop(kAgent);
  EXPECT_EQ(Read(stream.get(), 1), "");
  EXPECT_EQ(Read(target.get(), 1), "");
}

TEST_F(RelaysTest, TheEndOfTheDriverIsTheirs) {
  Port port;
  port.Listen();
  StartAgent();
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, Ask("a", port.number()).get());
  const UniqueFd target = port.Accept();
  service_->Expect(kOther);
  Result waiting = Ask("b", 22);
  service_->Shutdown(Now());
  EXPECT_EQ(Read(stream.get(), 1), "");
  EXPECT_EQ(Read(target.get(), 1), "");
  EXPECT_THAT(waiting.get(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the driver is ending")));
  EXPECT_THAT(Ask("b", 22).get(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the driver is ending")));
  EXPECT_EQ(agent_->Wait(), 1);
}

TEST_F(RelaysTest, AnAgentThatEndsWaitsForWhatIsBehindIt) {
  Port port;
  StartAgent();
  absl::StatusOr<UniqueFd> stream = absl::UnknownError("");
  {
    const Echo echo(&port);
    stream = Ask("a", port.number()).get();
    ASSERT_OK(stream);
    EXPECT_TRUE(service_->End({"a", kAgent.incarnation, false, "done"}));
    EXPECT_THAT(Ask("a", port.number()).get(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("by way of host a: the agent is ending")));
    EXPECT_TRUE(WriteAll(stream->get(), "on"));
    EXPECT_EQ(Read(stream->get(), 2), "on");
    stream->reset();
  }
  EXPECT_EQ(agent_->Wait(), 0);
}

TEST_F(RelaysTest, AnAgentThatEndsDoesNotWaitForEver) {
  Port port;
  port.Listen();
  StartAgent();
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, Ask("a", port.number()).get());
  EXPECT_TRUE(service_->End({"a", kAgent.incarnation, false, "done"}));
  EXPECT_EQ(agent_->Wait(), 0);
  EXPECT_EQ(Read(stream.get(), 1), "");
}

// Calls as the test likes, with an agent's certificate.
class Caller {
 public:
  Caller(const TlsIdentity& identity, const std::string& endpoint) {
    const absl::StatusOr<Dialled> dialled = DialFirst({endpoint}, {identity, DriverTlsName("job")}, Now() + kPatience);
    EXPECT_OK(dialled);
    stub_ = v1::AgentService::NewStub(dialled->channel);
  }
  ~Caller() {
    if (stream_ == nullptr) return;
    stream_context_.TryCancel();
    v1::DriverMessage message;
    while (stream_->Read(&message)) {
    }
    stream_->Finish();
  }

  void Register(const AgentIdentity& as) {
    stream_ = stub_->Connect(&stream_context_);
    v1::AgentMessage message;
    v1::Register* hello = message.mutable_register_();
    hello->set_protocol_min(1);
    hello->set_protocol_max(1);
    hello->set_job("job");
    hello->set_host(as.host);
    hello->set_incarnation(as.incarnation.value());
    stream_->Write(message);
  }
  // The number of the next relay that the driver asks for.
  uint64_t NextRelay() {
    v1::DriverMessage message;
    while (stream_->Read(&message)) {
      if (message.has_open_relay()) return message.open_relay().relay();
    }
    return 0;
  }

  struct Relay {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::RelayBytes, v1::RelayBytes>> stream;
    void Say(uint64_t relay, const std::string& data, bool end = false) {
      v1::RelayBytes bytes;
      bytes.set_relay(relay);
      bytes.set_data(data);
      bytes.set_end(end);
      stream->Write(bytes);
    }
    grpc::Status Finish() {
      v1::RelayBytes bytes;
      while (stream->Read(&bytes)) {
      }
      return stream->Finish();
    }
  };
  std::unique_ptr<Relay> Call() {
    auto relay = std::make_unique<Relay>();
    relay->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    relay->stream = stub_->Relay(&relay->context);
    return relay;
  }
  grpc::Status Refusal(uint64_t relay, const std::string& data = "") {
    const std::unique_ptr<Relay> call = Call();
    call->Say(relay, data);
    return call->Finish();
  }

 private:
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext stream_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DriverMessage>> stream_;
};

TEST_F(RelaysTest, OnlyTheAgentThatWasAskedServesARelay) {
  Caller agent(IdentityOf(kAgent), endpoint_), stranger(IdentityOf(kOther), endpoint_);
  agent.Register(kAgent);
  Result result = Ask("a", 22);
  const uint64_t relay = agent.NextRelay();
  ASSERT_NE(relay, 0u);
  const grpc::Status refusal = stranger.Refusal(relay);
  EXPECT_EQ(refusal.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refusal.error_message(), HasSubstr("has the certificate of farandole:job/agent/b/"));
  EXPECT_EQ(agent.Refusal(relay + 1).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(agent.Refusal(0).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(agent.Refusal(relay, "at once").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(service_->stats().relays_refused, 4);
  // None of it has done harm.
  const std::unique_ptr<Caller::Relay> call = agent.Call();
  call->Say(relay, "");
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, result.get());
  call->Say(0, "bytes", true);
  EXPECT_EQ(Read(stream.get(), 100), "bytes");
  ::shutdown(stream.get(), SHUT_WR);
  call->stream->WritesDone();
  EXPECT_TRUE(call->Finish().ok());
  EXPECT_EQ(agent.Refusal(relay).error_code(), grpc::StatusCode::NOT_FOUND) << "it is good for one call";
}

TEST_F(RelaysTest, AnAgentThatSpeaksNonsenseLosesTheRelay) {
  Caller agent(IdentityOf(kAgent), endpoint_);
  agent.Register(kAgent);
  for (const std::string& data : {std::string(RelayPump::kLongestPiece + 1, 'x'), std::string()}) {
    Result result = Ask("a", 22);
    const uint64_t relay = agent.NextRelay();
    const std::unique_ptr<Caller::Relay> call = agent.Call();
    call->Say(relay, "");
    ASSERT_OK_AND_ASSIGN(const UniqueFd stream, result.get());
    call->Say(data.empty() ? relay : 0, data);
    EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(Read(stream.get(), 1), "");
  }
}

TEST_F(RelaysTest, ACallThatBreaksOffIsALostConnection) {
  Caller agent(IdentityOf(kAgent), endpoint_);
  agent.Register(kAgent);
  Result result = Ask("a", 22);
  const std::unique_ptr<Caller::Relay> call = agent.Call();
  call->Say(agent.NextRelay(), "");
  ASSERT_OK_AND_ASSIGN(const UniqueFd stream, result.get());
  call->context.TryCancel();
  EXPECT_EQ(Read(stream.get(), 1), "");
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace farandole
