// A TlsServer among strangers, and DialFirst, which finds it.

#include "proto/rpc/tls_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "driver/security/job_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc/tls_dialer.h"
#include "proto/rpc/tls_names.h"
#include "proto/rpc/unix_server.h"
#include "proto/v1/worker_service.grpc.pb.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/testing/status_matchers.h"
#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kJob[] = "job";
constexpr absl::Duration kPatience = absl::Seconds(30);

// Says who called.
class TestService final : public v1::WorkerService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const v1::JoinRequest*,
                                 v1::JoinReply* reply) override {
    const auto names = context->auth_context()->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME);
    reply->set_slab_socket(names.size() == 1 ? std::string(names[0].data(), names[0].size()) : "nobody");
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, std::string* who) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::JoinReply reply;
  const grpc::Status status = v1::WorkerService::NewStub(channel)->Join(&context, v1::JoinRequest(), &reply);
  *who = reply.slab_socket();
  return status;
}

UniqueFd ConnectTo(const std::string& endpoint) {
  sockaddr_in to{};
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(endpoint.substr(endpoint.rfind(':') + 1), &port));
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

// Whether the other end closes the connection in time; what it says before is ignored.
bool IsClosed(int fd) {
  const Instant deadline = Now() + kPatience;
  while (true) {
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, PollTimeoutMs(deadline)) != 1) return false;
    char buffer[4096];
    if (::recv(fd, buffer, sizeof buffer, 0) <= 0) return true;
  }
}

// TLS as a stranger with OpenSSL speaks it: with a certificate or without; trusts everybody, and asks for HTTP/2.
void SpeakTls(int fd, const TlsIdentity* identity) {
  SSL_CTX* const context = ::SSL_CTX_new(::TLS_client_method());
  if (identity != nullptr) {
    BIO* const certificate = ::BIO_new_mem_buf(identity->certificate_pem.data(), -1);
    X509* const x509 = ::PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
    BIO* const key = ::BIO_new_mem_buf(identity->private_key_pem.data(), -1);
    EVP_PKEY* const pkey = ::PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    EXPECT_EQ(::SSL_CTX_use_certificate(context, x509), 1);
    EXPECT_EQ(::SSL_CTX_use_PrivateKey(context, pkey), 1);
    ::X509_free(x509);
    ::EVP_PKEY_free(pkey);
    ::BIO_free(certificate);
    ::BIO_free(key);
  }
  SSL* const ssl = ::SSL_new(context);
  ::SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>("\x02h2"), 3);
  ::SSL_set_fd(ssl, fd);
  ::SSL_connect(ssl);  // with TLS 1.3 it may well look as if it had worked
  char buffer[64];
  while (::SSL_read(ssl, buffer, sizeof buffer) > 0) {
  }
  ::SSL_free(ssl);
  ::SSL_CTX_free(context);
}

// Stands between one client and the server, and keeps what the client said.
class Eavesdropper {
 public:
  explicit Eavesdropper(std::string server) : server_(std::move(server)) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    endpoint_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Relay(); });
  }
  ~Eavesdropper() { Heard(); }

  const std::string& endpoint() const { return endpoint_; }

  // What the client said until the connection ended.
  std::string Heard() {
    if (thread_.joinable()) thread_.join();
    return heard_;
  }

 private:
  void Relay() {
    const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
    const UniqueFd server = ConnectTo(server_);
    pollfd both[] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}};
    while (::poll(both, 2, 30'000) > 0) {
      for (const int from : {0, 1}) {
        if (both[from].revents == 0) continue;
        char buffer[4096];
        const ssize_t n = ::recv(both[from].fd, buffer, sizeof buffer, 0);
        if (n <= 0) return;
        if (from == 0) heard_.append(buffer, static_cast<size_t>(n));
        ::send(both[1 - from].fd, buffer, static_cast<size_t>(n), MSG_NOSIGNAL);
      }
    }
  }

  const std::string server_;
  std::string endpoint_, heard_;
  UniqueFd listener_;
  std::thread thread_;
};

class TlsServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::signal(SIGPIPE, SIG_IGN);
    rlimit files;
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }

  void Start(int max_unproven = 256, absl::Duration prove_within = absl::Seconds(10)) {
    ASSERT_OK_AND_ASSIGN(authority_, JobAuthority::Create(kJob));
    ASSERT_OK_AND_ASSIGN(agent_, authority_->IssueAgent("a", Incarnation(5)));
    TlsServerOptions options;
    ASSERT_OK_AND_ASSIGN(options.identity, authority_->IssueServer());
    options.max_unproven = max_unproven;
    options.prove_within = prove_within;
    ASSERT_OK_AND_ASSIGN(server_, TlsServer::Start({&service_}, options));
    ASSERT_OK_AND_ASSIGN(endpoint_, server_->Listen("127.0.0.1"));
  }

  absl::StatusOr<Dialled> Dial(const TlsIdentity& identity, absl::Duration patience = kPatience) {
    return DialFirst({endpoint_}, {identity, DriverTlsName(kJob)}, Now() + patience);
  }

  // An agent of the job gets through.
  void ExpectServed() {
    ASSERT_OK_AND_ASSIGN(const Dialled dialled, Dial(agent_));
    EXPECT_EQ(dialled.address, endpoint_);
    std::string who;
    const grpc::Status status = Call(dialled.channel, &who);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(who, AgentTlsName(kJob, "a", Incarnation(5)));
  }

  // Waits for counters that threads of the server write in a moment.
  bool Await(const std::function<bool(const TlsServerStats&)>& condition) {
    const Instant deadline = Now() + kPatience;
    while (Now() < deadline) {
      if (condition(server_->stats())) return true;
      std::this_thread::yield();
    }
    const TlsServerStats stats = server_->stats();
    ADD_FAILURE() << "accepted " << stats.accepted << " proved " << stats.proved << " refused " << stats.refused
                  << " expired " << stats.expired << " evicted " << stats.evicted;
    return false;
  }
  bool AwaitRefused(int64_t count) {
    return Await([count](const TlsServerStats& stats) { return stats.refused == count; });
  }

  TestService service_;
  std::unique_ptr<JobAuthority> authority_;
  TlsIdentity agent_;
  std::unique_ptr<TlsServer> server_;
  std::string endpoint_;
};

TEST_F(TlsServerTest, ServesWhoIsOfTheJobAndKnowsWhoItIs) {
  Start();
  ExpectServed();
  ExpectServed();
  const TlsServerStats stats = server_->stats();
  EXPECT_EQ(stats.accepted, 2);
  EXPECT_EQ(stats.proved, 2);
  EXPECT_EQ(stats.refused + stats.expired + stats.evicted, 0);
}

TEST_F(TlsServerTest, ListensOnceForEachAddressAndSaysWhere) {
  Start();
  EXPECT_THAT(server_->Listen("127.0.0.1"), ::farandole::testing::IsOkAndHolds(endpoint_));
  ASSERT_OK_AND_ASSIGN(const std::string v6, server_->Listen("::1"));
  EXPECT_THAT(server_->listening(), ::testing::ElementsAre(endpoint_, v6));
  ASSERT_OK_AND_ASSIGN(const Dialled dialled, DialFirst({v6}, {agent_, DriverTlsName(kJob)}, Now() + kPatience));
  std::string who;
  EXPECT_TRUE(Call(dialled.channel, &who).ok());
  EXPECT_EQ(server_->stats().proved, 1);
  EXPECT_THAT(server_->Listen("localhost"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(TlsServerTest, OneServiceServesUnixSocketsToo) {
  Start();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<UnixServer> local, UnixServer::Start({&service_}));
  ASSERT_OK_AND_ASSIGN(const Dialled dialled,
                       DialFirst({local->address(), endpoint_}, {agent_, DriverTlsName(kJob)}, Now() + kPatience));
  EXPECT_EQ(dialled.address, local->address());
  std::string who;
  EXPECT_TRUE(Call(dialled.channel, &who).ok());
  EXPECT_EQ(who, "nobody");
  ExpectServed();
}

TEST_F(TlsServerTest, WhoSaysNothingIsClosedInTime) {
  Start(256, absl::Milliseconds(200));
  const UniqueFd silent = ConnectTo(endpoint_);
  EXPECT_TRUE(IsClosed(silent.get()));
  EXPECT_TRUE(Await([](const TlsServerStats& stats) { return stats.expired + stats.refused == 1; }));
  ExpectServed();
}

TEST_F(TlsServerTest, WhoLeavesIsForgotten) {
  Start();
  ConnectTo(endpoint_);
  EXPECT_TRUE(AwaitRefused(1));
}

TEST_F(TlsServerTest, GarbageAndPlainHttpAreRefused) {
  Start();
  const std::string http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  for (const std::string& bytes : {std::string(100'000, '\xff'), std::string("GET / HTTP/1.1\r\n\r\n"), http2}) {
    const UniqueFd stranger = ConnectTo(endpoint_);
    ::send(stranger.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);  // it may be closed before all is sent
    EXPECT_TRUE(IsClosed(stranger.get()));
  }
  EXPECT_TRUE(AwaitRefused(3));
  ExpectServed();
}

TEST_F(TlsServerTest, TlsWithoutACertificateOfTheJobIsRefused) {
  Start();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<JobAuthority> other, JobAuthority::Create(kJob));
  ASSERT_OK_AND_ASSIGN(const TlsIdentity theirs, other->IssueAgent("a", Incarnation(5)));
  ASSERT_OK_AND_ASSIGN(const TlsIdentity server, authority_->IssueServer());
  // None; one of another authority; one of this job that is not for a client.
  for (const TlsIdentity* identity : {static_cast<const TlsIdentity*>(nullptr), &theirs, &server}) {
    const UniqueFd stranger = ConnectTo(endpoint_);
    SpeakTls(stranger.get(), identity);
  }
  EXPECT_TRUE(AwaitRefused(3));
  ExpectServed();
}

TEST_F(TlsServerTest, ARecordedConnectionCannotBeReplayed) {
  Start();
  Eavesdropper eavesdropper(endpoint_);
  {
    ASSERT_OK_AND_ASSIGN(const Dialled dialled,
                         DialFirst({eavesdropper.endpoint()}, {agent_, DriverTlsName(kJob)}, Now() + kPatience));
    std::string who;
    EXPECT_TRUE(Call(dialled.channel, &who).ok());
  }
  const std::string recording = eavesdropper.Heard();
  EXPECT_THAT(recording, ::testing::Not(HasSubstr("farandole.v1.WorkerService"))) << "nobody else can read it";
  const UniqueFd stranger = ConnectTo(endpoint_);
  ::send(stranger.get(), recording.data(), recording.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(IsClosed(stranger.get()));
  EXPECT_TRUE(AwaitRefused(1));
  EXPECT_EQ(server_->stats().proved, 1);
}

TEST_F(TlsServerTest, AFloodIsBoundedAndAnAgentGetsThrough) {
  Start(/*max_unproven=*/64, /*prove_within=*/absl::Minutes(5));
  std::vector<UniqueFd> flood;
  for (int i = 0; i < 1000; ++i) flood.push_back(ConnectTo(endpoint_));
  std::thread more([&] {
    for (int i = 0; i < 1000; ++i) flood.push_back(ConnectTo(endpoint_));
  });
  ExpectServed();
  more.join();
  // The server has another agent, of which it hears after all of the flood.
  ExpectServed();
  EXPECT_TRUE(Await([](const TlsServerStats& stats) {
    return stats.accepted >= 2002 && stats.proved >= 2 && stats.evicted + stats.refused >= 2000 - 64;
  }));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(IsClosed(flood[i].get())) << i;
  const UniqueFd& last = flood.back();
  pollfd open{last.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&open, 1, 0), 0) << "the newest is not the one to go";
}

TEST_F(TlsServerTest, ShutdownEndsWhatIsOpen) {
  Start();
  const UniqueFd silent = ConnectTo(endpoint_);
  ASSERT_OK_AND_ASSIGN(const Dialled dialled, Dial(agent_));
  server_->Shutdown(Now());
  EXPECT_TRUE(IsClosed(silent.get()));
  std::string who;
  EXPECT_EQ(Call(dialled.channel, &who).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(server_->Listen("127.0.0.1"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsServerTest, DialFirstTakesTheFirstThatProvesItself) {
  Start();
  // One that nobody listens on, one that accepts and says nothing, one of another job, and ours.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<JobAuthority> other, JobAuthority::Create(kJob));
  TlsServerOptions options;
  ASSERT_OK_AND_ASSIGN(options.identity, other->IssueServer());
  TestService their_service;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TlsServer> theirs, TlsServer::Start({&their_service}, options));
  ASSERT_OK_AND_ASSIGN(const std::string their_endpoint, theirs->Listen("127.0.0.1"));
  const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent.get(), 10), 0);
  ASSERT_EQ(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string silent_endpoint = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  const std::vector<std::string> addresses = {"unix-abstract:farandole-nobody", "127.0.0.1:1", silent_endpoint,
                                              their_endpoint, endpoint_};
  ASSERT_OK_AND_ASSIGN(const Dialled dialled, DialFirst(addresses, {agent_, DriverTlsName(kJob)}, Now() + kPatience));
  EXPECT_EQ(dialled.address, endpoint_);
  EXPECT_EQ(theirs->stats().proved, 0);

  // Without ours there is a reason for each.
  EXPECT_THAT(
      DialFirst({addresses.begin(), addresses.end() - 1}, {agent_, DriverTlsName(kJob)}, Now() + absl::Seconds(2)),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("farandole-nobody: Connection refused; 127.0.0.1:1: "),
                     HasSubstr("onnection refused; " + silent_endpoint + ": no answer; " + their_endpoint + ": "),
                     HasSubstr("certificate verify failed"))));
}

TEST_F(TlsServerTest, ADeadLinkIsLeftToTheKernelToSee) {
  Start();
  DialOptions options{agent_, DriverTlsName(kJob), absl::Milliseconds(4321)};
  ASSERT_OK_AND_ASSIGN(const Dialled dialled, DialFirst({endpoint_}, options, Now() + kPatience));
  int found = 0;
  for (int fd = 3; fd < 256; ++fd) {
    sockaddr_in6 peer{};  // gRPC has sockets of this kind only
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.sin6_family != AF_INET6) continue;
    if (endpoint_ != absl::StrCat("127.0.0.1:", ntohs(peer.sin6_port))) continue;
    unsigned int timeout = 0;
    size = sizeof timeout;
    EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &size), 0);
    EXPECT_EQ(timeout, 4321u);
    ++found;
  }
  EXPECT_EQ(found, 1);
}

TEST_F(TlsServerTest, AServerOfAnotherNameIsNotTaken) {
  Start();
  EXPECT_THAT(DialFirst({endpoint_}, {agent_, DriverTlsName("other")}, Now() + absl::Milliseconds(500)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("other")));
  EXPECT_THAT(DialFirst({"localhost"}, {agent_, DriverTlsName(kJob)}, Now()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"localhost\"")));
  EXPECT_EQ(server_->stats().proved, 0);
}

}  // namespace
}  // namespace farandole
