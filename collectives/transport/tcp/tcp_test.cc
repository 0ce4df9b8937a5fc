// The pieces of the TCP means by themselves; as a whole they run in tests/conformance.
#include <string>
#include <vector>

#include "collectives/transport/control_channel.h"
#include "collectives/transport/tcp/handshake.h"
#include "collectives/transport/tcp/socket.h"
#include "collectives/transport/tcp/stripes.h"
#include "collectives/transport/tcp/wire.h"
#include "gtest/gtest.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

using ::farandole::testing::StatusIs;

constexpr char kKey[] = "the key of a job";

LinkClaim Claim() {
  LinkClaim claim;
  claim.generation = Generation(7);
  claim.group = 3;
  claim.from = 2;
  claim.to = 5;
  claim.purpose = LinkPurpose::kControl;
  claim.from_incarnation = Incarnation(0x1122334455667788);
  claim.to_incarnation = Incarnation(99);
  return claim;
}

TEST(Wire, WhatIsEncodedIsDecoded) {
  EXPECT_EQ(EncodeClaim(Claim()).size(), kClaimBytes);
  EXPECT_EQ(DecodeClaim(EncodeClaim(Claim())), Claim());
  const DataHeader data{Generation(~uint64_t{0}), 1, 2, uint64_t{1} << 40};
  EXPECT_EQ(EncodeDataHeader(data).size(), kDataHeaderBytes);
  EXPECT_EQ(DecodeDataHeader(EncodeDataHeader(data)), data);
  const ControlHeader control{ControlChannel::kMessageBytesMax};
  EXPECT_EQ(EncodeControlHeader(control).size(), kControlHeaderBytes);
  EXPECT_EQ(DecodeControlHeader(EncodeControlHeader(control)), control);
  const std::string nonce(kNonceBytes, 'n');
  EXPECT_EQ(DecodeGreeting(Greeting::kHello, EncodeGreeting(Greeting::kHello, nonce)), nonce);
  EXPECT_EQ(DecodeGreeting(Greeting::kChallenge, EncodeGreeting(Greeting::kHello, nonce)), absl::nullopt);
}

TEST(Wire, RefusesWhatMeansNothing) {
  EXPECT_EQ(DecodeControlHeader(EncodeControlHeader({static_cast<uint32_t>(ControlChannel::kMessageBytesMax) + 1})),
            absl::nullopt);
  LinkClaim claim = Claim();
  claim.to = claim.from;
  EXPECT_EQ(DecodeClaim(EncodeClaim(claim)), absl::nullopt);
  claim = Claim();
  claim.from = -1;
  EXPECT_EQ(DecodeClaim(EncodeClaim(claim)), absl::nullopt);
  claim = Claim();
  claim.purpose = static_cast<LinkPurpose>(9);
  EXPECT_EQ(DecodeClaim(EncodeClaim(claim)), absl::nullopt);
  claim = Claim();
  claim.stream = 1;
  EXPECT_EQ(DecodeClaim(EncodeClaim(claim)), absl::nullopt) << "a control link has one stream";
  claim.purpose = LinkPurpose::kData;
  EXPECT_EQ(DecodeClaim(EncodeClaim(claim)), claim);
  claim.stream = kStreamsMax;
  EXPECT_EQ(DecodeClaim(EncodeClaim(claim)), absl::nullopt);
}

// Bytes of a length near what the decoder wants, half of the time with a true beginning.
std::string Noise(Prng& prng, const std::string& true_one) {
  std::string bytes(prng.Below(2) != 0 ? true_one.size() : prng.Below(2 * true_one.size()), '\0');
  for (char& byte : bytes) byte = static_cast<char>(prng.Next());
  const size_t kept = prng.Below(true_one.size() + 1);
  if (prng.Below(2) != 0 && kept <= bytes.size()) bytes.replace(0, kept, true_one, 0, kept);
  return bytes;
}

TEST(Wire, DecodersTakeAnyBytesAndAnswerOnlyWithWhatEncodesToThem) {
  Prng prng(20240607);
  const std::string greeting = EncodeGreeting(Greeting::kHello, std::string(kNonceBytes, 'n'));
  int decoded = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = Noise(prng, greeting);
    if (const auto nonce = DecodeGreeting(Greeting::kHello, bytes)) {
      ++decoded;
      ASSERT_EQ(EncodeGreeting(Greeting::kHello, *nonce), bytes);
    }
    bytes = Noise(prng, EncodeClaim(Claim()));
    if (const auto claim = DecodeClaim(bytes)) {
      ++decoded;
      ASSERT_EQ(EncodeClaim(*claim), bytes);
    }
    bytes = Noise(prng, EncodeDataHeader({Generation(1), 0, 1, 8}));
    if (const auto header = DecodeDataHeader(bytes)) {
      ++decoded;
      ASSERT_EQ(EncodeDataHeader(*header), bytes);
    }
    bytes = Noise(prng, EncodeControlHeader({8}));
    if (const auto header = DecodeControlHeader(bytes)) {
      ++decoded;
      ASSERT_EQ(EncodeControlHeader(*header), bytes);
    }
  }
  EXPECT_GT(decoded, 1000) << "the noise must reach behind the magic";
}

// One message from a to b. What came, for an eavesdropper.
std::string Pass(Handshake& from, Handshake& to, absl::Status& status) {
  std::string message = from.TakeOutput();
  EXPECT_EQ(message.size(), to.wanted());
  status = to.Receive(message);
  return message;
}

TEST(Handshake, BothSidesProveTheKey) {
  Handshake client = Handshake::Client(kKey, Claim());
  Handshake server = Handshake::Server(kKey, Claim().to_incarnation);
  absl::Status status;
  for (int i = 0; i < 2; ++i) {
    Pass(client, server, status);
    ASSERT_OK(status);
    Pass(server, client, status);
    ASSERT_OK(status);
  }
  EXPECT_EQ(client.wanted(), 0u);
  EXPECT_EQ(server.wanted(), 0u);
  EXPECT_EQ(server.claim(), Claim());
  EXPECT_TRUE(client.TakeOutput().empty() && server.TakeOutput().empty());
}

TEST(Handshake, AWrongKeyIsRefusedByTheServer) {
  Handshake client = Handshake::Client("another key", Claim());
  Handshake server = Handshake::Server(kKey, Claim().to_incarnation);
  absl::Status status;
  Pass(client, server, status);
  Pass(server, client, status);
  Pass(client, server, status);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_TRUE(server.TakeOutput().empty()) << "it must not help to guess";
}

TEST(Handshake, AServerWithoutTheKeyIsRefusedByTheClient) {
  // The impostor accepts any proof, and sends one made with its own key.
  Handshake client = Handshake::Client(kKey, Claim());
  Handshake impostor = Handshake::Server("another key", Claim().to_incarnation);
  absl::Status status;
  Pass(client, impostor, status);
  Pass(impostor, client, status);
  const std::string proof = client.TakeOutput();
  EXPECT_THAT(client.Receive(proof.substr(kClaimBytes)), StatusIs(absl::StatusCode::kUnauthenticated))
      << "the client's own proof, sent back";
  EXPECT_THAT(client.Receive(std::string(kProofBytes, 'x')), StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST(Handshake, ARecordedHandshakeIsWorthNothing) {
  Handshake client = Handshake::Client(kKey, Claim());
  Handshake server = Handshake::Server(kKey, Claim().to_incarnation);
  absl::Status status;
  const std::string hello = Pass(client, server, status);
  Pass(server, client, status);
  const std::string claim = Pass(client, server, status);
  ASSERT_OK(status);
  Handshake later = Handshake::Server(kKey, Claim().to_incarnation);
  EXPECT_OK(later.Receive(hello));
  EXPECT_THAT(later.Receive(claim), StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST(Handshake, NoByteOfTheClaimOrItsProofCanBeChanged) {
  for (size_t at = 0; at < kClaimBytes + kProofBytes; ++at) {
    Handshake client = Handshake::Client(kKey, Claim());
    Handshake server = Handshake::Server(kKey, Claim().to_incarnation);
    absl::Status status;
    Pass(client, server, status);
    Pass(server, client, status);
    std::string claim = client.TakeOutput();
    claim[at] = static_cast<char>(claim[at] ^ 1);
    ASSERT_THAT(server.Receive(claim), StatusIs(absl::StatusCode::kUnauthenticated)) << "byte " << at;
  }
}

TEST(Handshake, AClaimForAnEarlierProcessInThisPlaceIsRefused) {
  Handshake client = Handshake::Client(kKey, Claim());
  Handshake server = Handshake::Server(kKey, Incarnation(100));
  absl::Status status;
  Pass(client, server, status);
  Pass(server, client, status);
  Pass(client, server, status);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
}

TEST(Handshake, AnythingElseIsRefusedAtOnce) {
  Prng prng(5);
  for (int i = 0; i < 1000; ++i) {
    std::string noise(kGreetingBytes, '\0');
    for (char& byte : noise) byte = static_cast<char>(prng.Next());
    Handshake server = Handshake::Server(kKey, Incarnation(1));
    ASSERT_THAT(server.Receive(noise), StatusIs(absl::StatusCode::kInvalidArgument));
    Handshake client = Handshake::Client(kKey, Claim());
    ASSERT_THAT(client.Receive(noise), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(Stripes, CoverAMessageAndAreNotTooShort) {
  for (const int64_t length :
       {int64_t{1}, kStripeBytesMin - 1, 2 * kStripeBytesMin, 5 * kStripeBytesMin + 3, int64_t{1} << 40}) {
    const int stripes = StripesOf(length, 4);
    ASSERT_GE(stripes, 1);
    ASSERT_LE(stripes, 4);
    int64_t at = 0;
    for (int i = 0; i < stripes; ++i) {
      const Segment stripe = StripeOf(length, stripes, i);
      EXPECT_EQ(stripe.begin, at);
      if (stripes > 1) {
        EXPECT_GE(stripe.size(), kStripeBytesMin);
      }
      at = stripe.end;
    }
    EXPECT_EQ(at, length);
  }
  EXPECT_EQ(StripesOf(kStripeBytesMin, 4), 1);
  EXPECT_EQ(StripesOf(2 * kStripeBytesMin, 4), 2);
  EXPECT_EQ(StripesOf(int64_t{1} << 30, 4), 4);
}

TEST(Endpoint, IsReadAndWrittenAsTheGroupSpecHasIt) {
  for (const std::string endpoint : {"127.0.0.1:4711", "[::1]:80", "[fe80::1]:0", "10.0.0.255:65535"}) {
    ASSERT_OK_AND_ASSIGN(const SocketAddress address, ParseEndpoint(endpoint));
    EXPECT_EQ(FormatEndpoint(address), endpoint);
  }
  for (const std::string wrong : {"", ":", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:65536", "127.0.0.1:-1",
                                  "::1:80", "[::1]", "[127.0.0.1]:80", "localhost:80", "[]:80", "1.2.3.4:8x"}) {
    EXPECT_THAT(ParseEndpoint(wrong), StatusIs(absl::StatusCode::kInvalidArgument)) << wrong;
  }
}

}  // namespace
}  // namespace farandole
