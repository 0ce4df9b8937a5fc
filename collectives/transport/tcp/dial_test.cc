#include "collectives/transport/tcp/dial.h"

#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/core/group.h"
#include "collectives/transport/tcp/candidates.h"
#include "collectives/transport/tcp/handshake.h"
#include "collectives/transport/tcp/socket.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kKey[] = "the key of the job";

Instant Eventually() { return Now() + absl::Seconds(60); }

LinkClaim Claim() {
  LinkClaim claim;
  claim.generation = Generation(5);
  claim.from = 1;
  claim.to = 0;
  claim.from_incarnation = Incarnation(11);
  claim.to_incarnation = Incarnation(10);
  return claim;
}

std::unique_ptr<TcpListener> Worker(uint64_t incarnation, std::vector<std::string> addresses = {"127.0.0.1"},
                                    const std::string& key = kKey) {
  TcpListener::Options options;
  options.incarnation = Incarnation(incarnation);
  options.addresses = std::move(addresses);
  auto listener = TcpListener::Create(options);
  EXPECT_OK(listener);
  (*listener)->Start(key);
  return *std::move(listener);
}

// Somebody who is no worker. Serve() accepts who is there and says `words` to each.
class Stranger {
 public:
  explicit Stranger(std::string words = "") : words_(std::move(words)) {
    auto fd = Listen(*ParseEndpoint("127.0.0.1:0"));
    EXPECT_OK(fd);
    fd_ = *std::move(fd);
    endpoint_ = FormatEndpoint(*LocalAddress(fd_.get()));
  }
  int fd() const { return fd_.get(); }
  const std::string& endpoint() const { return endpoint_; }
  size_t guests() const { return guests_.size(); }

  void Serve() {
    while (true) {
      auto guest = Accept(fd_.get());
      ASSERT_OK(guest);
      if (!*guest) return;
      const iovec piece{words_.data(), words_.size()};
      EXPECT_OK(SendSome(guest->get(), absl::MakeConstSpan(&piece, 1)));
      guests_.push_back(*std::move(guest));
    }
  }

 private:
  std::string words_;
  UniqueFd fd_;
  std::string endpoint_;
  std::vector<UniqueFd> guests_;
};

// An address where nobody listens, for as long as it lives.
struct Nobody {
  Nobody() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress any = *ParseEndpoint("127.0.0.1:0");
    EXPECT_EQ(::bind(fd.get(), any.get(), any.length), 0);
    endpoint = FormatEndpoint(*LocalAddress(fd.get()));
  }
  UniqueFd fd;
  std::string endpoint;
};

// Where the link leads to in the end.
absl::StatusOr<std::string> DialTo(const std::vector<std::string>& endpoints, Dial::Options options = {},
                                   Stranger* stranger = nullptr) {
  ASSIGN_OR_RETURN(Dial dial, Dial::Begin(endpoints, kKey, Claim(), options));
  const Instant deadline = Eventually();
  while (true) {
    pollfd fds[] = {{dial.fd(), POLLIN, 0}, {stranger != nullptr ? stranger->fd() : -1, POLLIN, 0}};
    if (::poll(fds, 2, PollTimeoutMs(deadline)) <= 0) return absl::DeadlineExceededError(dial.Describe());
    if (fds[1].revents != 0) stranger->Serve();
    if (fds[0].revents == 0) continue;
    ASSIGN_OR_RETURN(const bool proven, dial.Advance());
    if (!proven) continue;
    EXPECT_TRUE(dial.TakeFd());
    return dial.endpoint();
  }
}

// All addresses at once: what leads nowhere is not waited for.
Dial::Options AtOnce() {
  Dial::Options options;
  options.step = absl::ZeroDuration();
  return options;
}
// One after the other, only on failure.
Dial::Options OnFailureOnly() {
  Dial::Options options;
  options.step = absl::Hours(1);
  return options;
}

TEST(Dial, TheFirstAddressThatAnswersIsTaken) {
  const auto peer = Worker(10);
  EXPECT_EQ(DialTo({peer->endpoint()}).value(), peer->endpoint());
  EXPECT_EQ(DialTo({peer->endpoint(), Nobody().endpoint}, OnFailureOnly()).value(), peer->endpoint());
}

TEST(Dial, ARefusedAddressIsPassedAtOnce) {
  const auto peer = Worker(10);
  const Nobody nobody;
  EXPECT_EQ(DialTo({nobody.endpoint, "nonsense", peer->endpoint()}, OnFailureOnly()).value(), peer->endpoint());
}

TEST(Dial, ASilentAddressIsPassedAfterAStep) {
  const auto peer = Worker(10);
  Stranger silent;
  const Instant begin = Now();
  EXPECT_EQ(DialTo({silent.endpoint(), peer->endpoint()}, Dial::Options(), &silent).value(), peer->endpoint());
  EXPECT_GE(Now() - begin, Dial::Options().step);
  EXPECT_EQ(silent.guests(), 1u);
}

TEST(Dial, GarbageIsPassedAtOnce) {
  const auto peer = Worker(10);
  Stranger server("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(DialTo({server.endpoint(), peer->endpoint()}, OnFailureOnly(), &server).value(), peer->endpoint());
}

TEST(Dial, AnotherWorkerOfTheJobIsPassedAtOnce) {
  const auto peer = Worker(10);
  const auto decoy = Worker(12);
  EXPECT_EQ(DialTo({decoy->endpoint(), peer->endpoint()}, OnFailureOnly()).value(), peer->endpoint());
  EXPECT_EQ(decoy->stats().delivered, 0);
}

TEST(Dial, AWorkerOfAnotherJobIsPassedAtOnce) {
  const auto peer = Worker(10);
  const auto other = Worker(10, {"127.0.0.1"}, "another key");
  EXPECT_EQ(DialTo({other->endpoint(), peer->endpoint()}, OnFailureOnly()).value(), peer->endpoint());
}

// However the decoy and the peer race, the decoy's refusal brings back those who were let go for it.
TEST(Dial, ADecoyThatAnswersFirstCostsNothingButTime) {
  const auto peer = Worker(10);
  const auto decoy = Worker(12);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(DialTo({decoy->endpoint(), peer->endpoint(), decoy->endpoint()}, AtOnce()).value(), peer->endpoint());
  }
}

TEST(Dial, WhoTakesTheClaimAndProvesNothingIsGivenUp) {
  const auto peer = Worker(10);
  Stranger thief(EncodeGreeting(Greeting::kChallenge, std::string(kNonceBytes, 'n')));
  Dial::Options options = OnFailureOnly();
  options.proof_timeout = absl::Milliseconds(30);
  EXPECT_EQ(DialTo({thief.endpoint(), peer->endpoint()}, options, &thief).value(), peer->endpoint());
  Stranger liar(
      absl::StrCat(EncodeGreeting(Greeting::kChallenge, std::string(kNonceBytes, 'n')), std::string(kProofBytes, 'x')));
  EXPECT_EQ(DialTo({liar.endpoint(), peer->endpoint()}, OnFailureOnly(), &liar).value(), peer->endpoint());
}

TEST(Dial, ThePeerGetsOneLinkHoweverManyAddressesItHas) {
  const auto peer = Worker(10, {"127.0.0.1", "127.0.0.2", "127.0.0.3", "::1"});
  const std::vector<std::string> endpoints = SplitEndpoints(peer->endpoint());
  ASSERT_EQ(endpoints.size(), 4u);
  GroupSpec spec;
  spec.generation = Claim().generation;
  spec.members = {{"a", Incarnation(10), peer->endpoint()}, {"b", Incarnation(11), ""}};
  const auto inbox = peer->Register(spec, Claim().purpose);
  constexpr int kTimes = 100;
  for (int i = 0; i < kTimes; ++i) ASSERT_OK(DialTo(endpoints, AtOnce()));
  // The listener has seen everything that came before a link that it delivers now.
  for (int i = 0; i < kTimes;) {
    pollfd wait{inbox->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, PollTimeoutMs(Eventually())), 1) << i << " links";
    while (inbox->Take().has_value()) ++i;
  }
  EXPECT_EQ(peer->stats().delivered, kTimes);
}

TEST(Dial, AllAddressesFailedIsOneErrorWithEachReason) {
  const Nobody nobody;
  const auto decoy = Worker(12);
  Stranger server("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  const auto result = DialTo({nobody.endpoint, decoy->endpoint(), server.endpoint(), "nonsense"}, AtOnce(), &server);
  ASSERT_THAT(result, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr(absl::StrCat("to ", nobody.endpoint, ": Connection refused")),
                                     HasSubstr(absl::StrCat("to ", decoy->endpoint(), ": it closed the connection")),
                                     HasSubstr("another worker listens there"),
                                     HasSubstr(absl::StrCat("to ", server.endpoint(), ": what listens there is no")),
                                     HasSubstr("to nonsense: \"nonsense\" is no ADDRESS:PORT"))));
}

TEST(Dial, DescribesWhatItWaitsFor) {
  Stranger silent;
  ASSERT_OK_AND_ASSIGN(Dial dial, Dial::Begin({silent.endpoint(), "127.0.0.9:1"}, kKey, Claim(), OnFailureOnly()));
  EXPECT_THAT(dial.Advance(), testing::IsOkAndHolds(false));
  EXPECT_EQ(dial.Describe(), absl::StrCat("to ", silent.endpoint(), ": no answer yet; to 127.0.0.9:1: not tried yet"));
}

// The peer has given up and made its link elsewhere: a listener that only now gets to the claim must not take it.
TEST(HandshakeIo, AClaimWhoseMakerHasGoneIsNotProvenTo) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  HandshakeIo server(UniqueFd(ends[0]), Handshake::Server(kKey, Incarnation(10)));
  {
    HandshakeIo client(UniqueFd(ends[1]), Handshake::Client(kKey, Claim()));
    ASSERT_THAT(client.Advance(), testing::IsOkAndHolds(POLLIN));
    ASSERT_THAT(server.Advance(), testing::IsOkAndHolds(POLLIN));
    ASSERT_THAT(client.Advance(), testing::IsOkAndHolds(POLLIN));
    EXPECT_TRUE(client.claimed());
  }
  EXPECT_THAT(server.Advance(), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace farandole
