// What strangers can do to the TCP listener of a worker: nothing but be counted.
#include <poll.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/transport/control_channel.h"
#include "collectives/transport/tcp/handshake_io.h"
#include "collectives/transport/tcp/socket.h"
#include "collectives/transport/tcp/tcp_control_channel.h"
#include "collectives/transport/tcp/tcp_link.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "collectives/transport/tcp/tcp_transport.h"
#include "gtest/gtest.h"
#include "tests/conformance/worlds.h"
#include "tools/base/clock.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole::testing {
namespace {

using ::testing::HasSubstr;
using Stats = TcpListener::Stats;

constexpr char kKey[] = "the key of the job";

class TcpStrangerTest : public ::testing::Test {
 protected:
  // A group of two whose rank 0 is tried on.
  void SetUp() override { Make({}); }

  void Make(TcpListener::Options options) {
    listeners_.clear();
    spec_ = GroupSpec();
    spec_.generation = Generation(5);
    for (uint64_t i = 1; i <= 2; ++i) {
      options.incarnation = Incarnation(i);
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<TcpListener> listener, TcpListener::Create(options));
      listener->Start(kKey);
      spec_.members.push_back({i == 1 ? "a" : "b", options.incarnation, listener->endpoint()});
      listeners_.push_back(std::move(listener));
    }
  }

  TcpListener& listener() { return *listeners_[0]; }
  GroupSpec Spec(Rank rank) const {
    GroupSpec spec = spec_;
    spec.rank = rank;
    return spec;
  }

  UniqueFd Connect() {
    auto fd = BeginConnect(listener().endpoint());
    EXPECT_OK(fd);
    return *std::move(fd);
  }

  void Write(const UniqueFd& fd, absl::string_view bytes) {
    while (!bytes.empty()) {
      const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
      const auto sent = SendSome(fd.get(), absl::MakeConstSpan(&piece, 1));
      ASSERT_OK(sent);
      bytes.remove_prefix(*sent);
      pollfd wait{fd.get(), POLLOUT, 0};
      ::poll(&wait, 1, -1);
    }
  }

  std::string Read(const UniqueFd& fd, size_t length) {
    std::string bytes(length, '\0');
    for (size_t had = 0; had < length;) {
      pollfd wait{fd.get(), POLLIN, 0};
      ::poll(&wait, 1, PollTimeoutMs(Eventually()));
      const iovec piece{bytes.data() + had, length - had};
      const auto received = ReceiveSome(fd.get(), absl::MakeConstSpan(&piece, 1));
      if (!received.ok()) return "";
      had += *received;
    }
    return bytes;
  }

  // Waits until the listener has ended the connection.
  static void AwaitEnd(const UniqueFd& fd) {
    while (true) {
      pollfd wait{fd.get(), POLLIN, 0};
      ASSERT_EQ(::poll(&wait, 1, PollTimeoutMs(Eventually())), 1) << "the listener keeps the connection";
      char byte;
      const iovec piece{&byte, 1};
      if (!ReceiveSome(fd.get(), absl::MakeConstSpan(&piece, 1)).ok()) return;
    }
  }

  // One side's whole handshake.
  absl::Status Prove(HandshakeIo& io) {
    while (true) {
      ASSIGN_OR_RETURN(const short events, io.Advance());
      if (events == 0) return absl::OkStatus();
      pollfd wait{io.fd(), events, 0};
      if (::poll(&wait, 1, PollTimeoutMs(Eventually())) != 1) return absl::DeadlineExceededError("no answer");
    }
  }
  absl::StatusOr<UniqueFd> ConnectAs(const LinkClaim& claim, absl::string_view key) {
    HandshakeIo io(Connect(), Handshake::Client(key, claim));
    RETURN_IF_ERROR(Prove(io));
    return io.TakeFd();
  }

  // The group works: both directions of the link between its two ranks.
  void ExpectTheGroupWorks() {
    OnAllRanks(2, [&](Rank rank) {
      const auto transport = CreateTcpTransport(Spec(rank), *listeners_[rank]);
      const std::byte out{static_cast<uint8_t>(40 + rank)};
      std::byte in{0};
      EXPECT_OK(transport->SendRecv(1, 1 - rank, absl::MakeConstSpan(&out, 1), 1 - rank, absl::MakeSpan(&in, 1),
                                    Eventually()));
      EXPECT_EQ(in, std::byte{static_cast<uint8_t>(41 - rank)});
    });
  }

  GroupSpec spec_;
  std::vector<std::unique_ptr<TcpListener>> listeners_;
};

TEST_F(TcpStrangerTest, GarbageIsRefused) {
  Prng prng(3);
  for (int i = 0; i < 50; ++i) {
    const UniqueFd fd = Connect();
    std::string noise(kGreetingBytes + prng.Below(1000), '\0');
    for (char& byte : noise) byte = static_cast<char>(prng.Next());
    Write(fd, noise);
    AwaitEnd(fd);
  }
  EXPECT_EQ(listener().stats().refused, 50);
  ExpectTheGroupWorks();
}

TEST_F(TcpStrangerTest, AWrongKeyIsRefusedAndTheClientIsToldNothing) {
  const auto link = ConnectAs(ClaimOf(Spec(1), 0, LinkPurpose::kData), "another key");
  EXPECT_THAT(link, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(listener().stats().refused, 1);
  ExpectTheGroupWorks();
}

TEST_F(TcpStrangerTest, ARecordedHandshakeIsRefused) {
  std::string hello, claim;
  {
    // What an eavesdropper hears of a true client.
    Handshake client = Handshake::Client(kKey, ClaimOf(Spec(1), 0, LinkPurpose::kData));
    const UniqueFd fd = Connect();
    Write(fd, hello = client.TakeOutput());
    ASSERT_OK(client.Receive(Read(fd, kGreetingBytes)));
    Write(fd, claim = client.TakeOutput());
    ASSERT_OK(client.Receive(Read(fd, kProofBytes)));
  }
  const UniqueFd fd = Connect();
  Write(fd, hello);
  EXPECT_EQ(Read(fd, kGreetingBytes).size(), kGreetingBytes);
  Write(fd, claim);
  AwaitEnd(fd);
  EXPECT_EQ(listener().stats().refused, 1);
}

TEST_F(TcpStrangerTest, SilenceExpires) {
  TcpListener::Options options;
  options.handshake_timeout = absl::Milliseconds(20);
  Make(options);
  const UniqueFd silent = Connect();
  const UniqueFd slow = Connect();
  Write(slow, EncodeGreeting(Greeting::kHello, std::string(kNonceBytes, 'n')).substr(0, 11));
  AwaitEnd(silent);
  AwaitEnd(slow);
  EXPECT_EQ(listener().stats().expired, 2);
}

TEST_F(TcpStrangerTest, ManySilentConnectionsDoNotKeepMembersOut) {
  TcpListener::Options options;
  options.unproven_max = 4;
  options.unproven_grace = absl::Milliseconds(5);
  Make(options);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(Connect());
  ExpectTheGroupWorks();
  for (int i = 0; i < 16; ++i) AwaitEnd(silent[i]);
  EXPECT_GE(listener().stats().crowded, 16);
}

// As many as the members of a large group do to rank 0.
TEST_F(TcpStrangerTest, ManyMembersThatComeAtOnceWaitForEachOther) {
  TcpListener::Options options;
  options.unproven_max = 4;
  options.unproven_grace = absl::Seconds(50);
  options.handshake_timeout = absl::Seconds(100);
  Make(options);
  std::vector<HandshakeIo> members;
  for (int i = 0; i < 30; ++i) {
    members.emplace_back(Connect(), Handshake::Client(kKey, ClaimOf(Spec(1), 0, LinkPurpose::kData)));
    ASSERT_OK(members.back().Advance());
  }
  for (HandshakeIo& member : members) ASSERT_OK(Prove(member));
  EXPECT_EQ(listener().stats().crowded, 0);
}

TEST_F(TcpStrangerTest, AMemberWithAnotherIncarnationOrPlaceIsRefused) {
  const auto transport = CreateTcpTransport(Spec(0), listener());
  GroupSpec old = Spec(1);
  old.members[1].incarnation = Incarnation(77);
  for (const LinkClaim& claim : {ClaimOf(old, 0, LinkPurpose::kData)}) {
    ASSERT_OK_AND_ASSIGN(const UniqueFd fd, ConnectAs(claim, kKey));
    AwaitEnd(fd);
  }
  LinkClaim far = ClaimOf(Spec(1), 0, LinkPurpose::kData);
  far.from = 9;
  ASSERT_OK_AND_ASSIGN(const UniqueFd fd, ConnectAs(far, kKey));
  AwaitEnd(fd);
  EXPECT_EQ(listener().stats().refused, 2);
  EXPECT_EQ(listener().stats().delivered, 0);
}

TEST_F(TcpStrangerTest, ALinkThatComesEarlyWaitsForItsGroupAndAnOldOneIsEnded) {
  const LinkClaim early = ClaimOf(Spec(1), 0, LinkPurpose::kData);
  LinkClaim old = early;
  old.generation = Generation(4);
  ASSERT_OK_AND_ASSIGN(const UniqueFd of_old, ConnectAs(old, kKey));
  ASSERT_OK_AND_ASSIGN(const UniqueFd of_now, ConnectAs(early, kKey));
  auto inbox = listener().Register(Spec(0), LinkPurpose::kData);
  AwaitEnd(of_old);
  pollfd wait{inbox->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, PollTimeoutMs(Eventually())), 1);
  auto arrival = inbox->Take();
  ASSERT_TRUE(arrival.has_value());
  EXPECT_EQ(arrival->from, 1);
  EXPECT_FALSE(inbox->Take().has_value());
  ASSERT_OK_AND_ASSIGN(const UniqueFd too_late, ConnectAs(old, kKey));
  AwaitEnd(too_late);
  inbox.reset();
  ASSERT_OK_AND_ASSIGN(const UniqueFd after_the_group, ConnectAs(early, kKey));
  AwaitEnd(after_the_group);
  EXPECT_EQ(listener().stats().stale, 3);
  EXPECT_EQ(listener().stats().delivered, 1);
}

TEST_F(TcpStrangerTest, ParkedLinksAreBounded) {
  TcpListener::Options options;
  options.parked_max = 2;
  Make(options);
  std::vector<UniqueFd> links;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(UniqueFd fd, ConnectAs(ClaimOf(Spec(1), 0, LinkPurpose::kData), kKey));
    links.push_back(std::move(fd));
  }
  AwaitEnd(links[2]);
  EXPECT_EQ(listener().stats().crowded, 1);
}

TEST_F(TcpStrangerTest, AnImpostorThatListensIsNotSpokenTo) {
  // Rank 1 believes that rank 0 listens where somebody without the key does.
  ASSERT_OK_AND_ASSIGN(const SocketAddress any, ParseEndpoint("127.0.0.1:0"));
  ASSERT_OK_AND_ASSIGN(const UniqueFd impostor, Listen(any));
  ASSERT_OK_AND_ASSIGN(const SocketAddress address, LocalAddress(impostor.get()));
  spec_.members[0].endpoint = FormatEndpoint(address);
  const auto transport = CreateTcpTransport(Spec(1), *listeners_[1]);
  const std::string secret = "the bytes of a tensor";
  absl::Status status;
  BlockedThread sender([&] {
    status =
        transport->SendRecv(1, 0, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(secret.data()), secret.size()),
                            1, {}, Eventually());
  });
  pollfd wait{impostor.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, PollTimeoutMs(Eventually())), 1);
  ASSERT_OK_AND_ASSIGN(const UniqueFd victim, Accept(impostor.get()));
  Read(victim, kGreetingBytes);
  Write(victim, EncodeGreeting(Greeting::kChallenge, std::string(kNonceBytes, 'i')));
  EXPECT_EQ(Read(victim, kClaimBytes + kProofBytes).size(), kClaimBytes + kProofBytes);
  Write(victim, std::string(kProofBytes, 'x'));
  sender.Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 0 on host a")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("key"));
}

TEST_F(TcpStrangerTest, NobodyListensIsSaidWithTheAddress) {
  spec_.members[1].endpoint = listeners_[1]->endpoint();
  listeners_.pop_back();
  const auto transport = CreateTcpTransport(Spec(0), listener());
  const std::byte byte{1};
  EXPECT_THAT(transport->SendRecv(1, 1, absl::MakeConstSpan(&byte, 1), 0, {}, Eventually()),
              StatusIs(absl::StatusCode::kUnavailable,
                       ::testing::AllOf(HasSubstr("rank 1 on host b"), HasSubstr(spec_.members[1].endpoint),
                                        HasSubstr("refused"))));
}

// What leads to the peer once does so again: the second group does not ask at the address that was silent.
TEST_F(TcpStrangerTest, AProvenAddressIsTriedFirstTheNextTime) {
  ASSERT_OK_AND_ASSIGN(const SocketAddress any, ParseEndpoint("127.0.0.1:0"));
  ASSERT_OK_AND_ASSIGN(const UniqueFd silent, Listen(any));
  ASSERT_OK_AND_ASSIGN(const SocketAddress address, LocalAddress(silent.get()));
  spec_.members[1].endpoint = absl::StrCat(FormatEndpoint(address), ",", listeners_[1]->endpoint());
  ExpectTheGroupWorks();
  ASSERT_OK_AND_ASSIGN(const UniqueFd first, Accept(silent.get()));
  EXPECT_TRUE(first);
  spec_.generation = Generation(6);
  ExpectTheGroupWorks();
  ASSERT_OK_AND_ASSIGN(const UniqueFd second, Accept(silent.get()));
  EXPECT_FALSE(second);
}

TEST_F(TcpStrangerTest, EveryAddressThatFailedIsSaidWithItsReason) {
  const std::string dead = listeners_[1]->endpoint();
  listeners_.pop_back();
  const std::string own = listener().endpoint();  // where rank 0 itself answers
  spec_.members[1].endpoint = absl::StrCat(dead, ",", own);
  const auto transport = CreateTcpTransport(Spec(0), listener());
  const std::byte byte{1};
  EXPECT_THAT(transport->SendRecv(1, 1, absl::MakeConstSpan(&byte, 1), 0, {}, Eventually()),
              StatusIs(absl::StatusCode::kUnavailable,
                       ::testing::AllOf(HasSubstr("lost rank 1 on host b: connecting to "),
                                        HasSubstr(absl::StrCat("to ", dead, ": Connection refused")),
                                        HasSubstr(absl::StrCat("to ", own, ": it closed the connection")))));
}

TEST_F(TcpStrangerTest, ALinkThatIsStillOnItsWayAtTheDeadlineIsExplained) {
  ASSERT_OK_AND_ASSIGN(const SocketAddress any, ParseEndpoint("127.0.0.1:0"));
  ASSERT_OK_AND_ASSIGN(const UniqueFd silent, Listen(any));
  ASSERT_OK_AND_ASSIGN(const SocketAddress address, LocalAddress(silent.get()));
  spec_.members[1].endpoint = FormatEndpoint(address);
  const auto transport = CreateTcpTransport(Spec(0), listener());
  const std::byte byte{1};
  EXPECT_THAT(transport->SendRecv(1, 1, absl::MakeConstSpan(&byte, 1), 0, {}, Now() + absl::Milliseconds(30)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       ::testing::AllOf(HasSubstr("rank 1 on host b"),
                                        HasSubstr(absl::StrCat("to ", spec_.members[1].endpoint, ": no answer yet")))));
}

TEST_F(TcpStrangerTest, AControlLinkThatCannotBeMadeIsToldWithEveryReason) {
  const std::string dead = listeners_[0]->endpoint();
  listeners_.erase(listeners_.begin());
  const std::string own = listeners_[0]->endpoint();
  spec_.members[0].endpoint = absl::StrCat(dead, ",", own);
  const auto channel = CreateTcpControlChannel(Spec(1), *listeners_[0]);
  const ControlChannel::Event event = channel->Receive(Eventually());
  EXPECT_EQ(event.kind, ControlChannel::Event::kPeerLost);
  EXPECT_THAT(event.message,
              ::testing::AllOf(HasSubstr(absl::StrCat("to ", dead, ": Connection refused")), HasSubstr(own)));
  channel->Close(Eventually());
}

// A program may load its data for minutes between its init and its first operation.
TEST_F(TcpStrangerTest, AMemberThatHasNothingToSayIsNoStranger) {
  TcpListener::Options options;
  options.handshake_timeout = absl::Milliseconds(50);
  Make(options);
  OnAllRanks(2, [&](Rank rank) {
    using Event = ControlChannel::Event;
    const auto channel = CreateTcpControlChannel(Spec(rank), *listeners_[rank]);
    if (rank == 1) {
      const Event nothing = channel->Receive(Now() + 6 * options.handshake_timeout);
      EXPECT_EQ(nothing.kind, Event::kTimeout) << nothing.message;
      EXPECT_OK(channel->Send(0, "late"));
    } else {
      const Event late = channel->Receive(Eventually());
      EXPECT_EQ(late.kind, Event::kMessage);
      EXPECT_EQ(late.message, "late");
    }
    channel->Close(Eventually());
  });
  EXPECT_EQ(listener().stats().expired, 0);
}

}  // namespace
}  // namespace farandole::testing
