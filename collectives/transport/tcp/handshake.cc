#include "collectives/transport/tcp/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/check.h"
#include "tools/base/random_bytes.h"

namespace farandole {
namespace {

// As long as each other, so that label, nonces and claim cannot be cut differently.
constexpr absl::string_view kClientLabel = "farandole link client";
constexpr absl::string_view kServerLabel = "farandole link server";

std::string HmacSha256(absl::string_view key, absl::string_view data) {
  std::string mac(kProofBytes, '\0');
  unsigned int length = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(data.data()),
           data.size(), reinterpret_cast<unsigned char*>(mac.data()), &length);
  CHECK(made != nullptr && length == kProofBytes) << "HMAC-SHA256 gave " << length << " bytes";
  return mac;
}

// Takes the same time wherever the first difference is.
bool SameBytes(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Handshake::Handshake(absl::string_view key, State state)
    : key_(key), state_(state), own_nonce_(RandomBytes(kNonceBytes)) {
  CHECK(!key.empty()) << "a link needs the job's key";
}

Handshake Handshake::Client(absl::string_view key, const LinkClaim& claim) {
  Handshake handshake(key, State::kAwaitChallenge);
  handshake.claim_ = claim;
  handshake.client_nonce_ = handshake.own_nonce_;
  handshake.output_ = EncodeGreeting(Greeting::kHello, handshake.own_nonce_);
  return handshake;
}

Handshake Handshake::Server(absl::string_view key, Incarnation self) {
  Handshake handshake(key, State::kAwaitHello);
  handshake.self_ = self;
  handshake.server_nonce_ = handshake.own_nonce_;
  return handshake;
}

std::string Handshake::TakeOutput() { return std::exchange(output_, std::string()); }

size_t Handshake::wanted() const {
  switch (state_) {
    case State::kAwaitHello:
    case State::kAwaitChallenge:
      return kGreetingBytes;
    case State::kAwaitClaim:
      return kClaimBytes + kProofBytes;
    case State::kAwaitProof:
      return kProofBytes;
    case State::kDone:
      return 0;
  }
  return 0;
}

absl::Status Handshake::Receive(absl::string_view message) {
  switch (state_) {
    case State::kAwaitHello:
      return ReceiveHello(message);
    case State::kAwaitChallenge:
      return ReceiveChallenge(message);
    case State::kAwaitClaim:
      return ReceiveClaim(message);
    case State::kAwaitProof:
      return ReceiveProof(message);
    case State::kDone:
      break;
  }
  return absl::InternalError("the handshake is over");
}

absl::Status Handshake::ReceiveHello(absl::string_view message) {
  const auto nonce = DecodeGreeting(Greeting::kHello, message);
  if (!nonce.has_value()) return absl::InvalidArgumentError("what came is no greeting of a farandole worker");
  client_nonce_ = *nonce;
  output_ = EncodeGreeting(Greeting::kChallenge, own_nonce_);
  state_ = State::kAwaitClaim;
  return absl::OkStatus();
}

absl::Status Handshake::ReceiveChallenge(absl::string_view message) {
  const auto nonce = DecodeGreeting(Greeting::kChallenge, message);
  if (!nonce.has_value())
    return absl::InvalidArgumentError("what listens there is no farandole worker of this version");
  server_nonce_ = *nonce;
  const std::string claim = EncodeClaim(claim_);
  output_ = absl::StrCat(claim, Proof(kClientLabel, claim));
  claimed_ = true;
  state_ = State::kAwaitProof;
  return absl::OkStatus();
}

absl::Status Handshake::ReceiveClaim(absl::string_view message) {
  if (message.size() != kClaimBytes + kProofBytes) return absl::InvalidArgumentError("a claim of the wrong length");
  const absl::string_view claim = message.substr(0, kClaimBytes);
  if (!SameBytes(message.substr(kClaimBytes), Proof(kClientLabel, claim))) {
    return absl::UnauthenticatedError("the connecting process does not have this job's key");
  }
  const auto decoded = DecodeClaim(claim);
  if (!decoded.has_value()) return absl::InvalidArgumentError("a claim that means nothing");
  if (decoded->to_incarnation != self_) {
    return absl::NotFoundError("the connection is meant for a worker that was here before this one");
  }
  claim_ = *decoded;
  output_ = Proof(kServerLabel, claim);
  state_ = State::kDone;
  return absl::OkStatus();
}

absl::Status Handshake::ReceiveProof(absl::string_view message) {
  if (!SameBytes(message, Proof(kServerLabel, EncodeClaim(claim_)))) {
    return absl::UnauthenticatedError("the process that listens there does not have this job's key");
  }
  state_ = State::kDone;
  return absl::OkStatus();
}

std::string Handshake::Proof(absl::string_view label, absl::string_view claim) const {
  return HmacSha256(key_, absl::StrCat(label, client_nonce_, server_nonce_, claim));
}

}  // namespace farandole
