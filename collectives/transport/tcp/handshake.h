#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "collectives/transport/tcp/wire.h"
#include "tools/base/ids.h"

namespace farandole {

// The handshake of one side (wire.h), without the socket: both ends prove that they hold the job's key before anything
// else is read, and what the connection is for is part of the proof. Each side's fresh nonce is in both proofs, so a
// recorded handshake is worth nothing; the labels differ, so a side's own proof cannot be sent back to it.
//
// Order of calls: send TakeOutput(), Receive() one message of wanted() bytes, and again, until wanted() is 0; then send
// the last TakeOutput(). The first error is the end.
class Handshake {
 public:
  // The side that connects. `key` is the job's, not empty.
  static Handshake Client(absl::string_view key, const LinkClaim& claim);

  // The side that listens, whose incarnation is `self`.
  static Handshake Server(absl::string_view key, Incarnation self);

  // What is to be sent now; empty when there is nothing.
  std::string TakeOutput();

  // Length of the message that comes next; 0 when the peer has proved itself and nothing more comes.
  size_t wanted() const;

  // At the side that connects: whether the claim has been handed out or is about to be.
  bool claimed() const { return claimed_; }

  // kInvalidArgument for what is no such message, kUnauthenticated for a proof made without the key, kNotFound at the
  // server for a claim that means another process.
  absl::Status Receive(absl::string_view message);

  // What the link is for; at the server, once wanted() is 0.
  const LinkClaim& claim() const { return claim_; }

 private:
  enum class State { kAwaitHello, kAwaitChallenge, kAwaitClaim, kAwaitProof, kDone };

  Handshake(absl::string_view key, State state);

  absl::Status ReceiveHello(absl::string_view message);
  absl::Status ReceiveChallenge(absl::string_view message);
  absl::Status ReceiveClaim(absl::string_view message);
  absl::Status ReceiveProof(absl::string_view message);
  std::string Proof(absl::string_view label, absl::string_view claim) const;

  std::string key_;
  State state_;
  bool claimed_ = false;
  LinkClaim claim_;
  Incarnation self_;
  std::string own_nonce_;
  std::string client_nonce_;
  std::string server_nonce_;
  std::string output_;
};

}  // namespace farandole
