#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/transport/tcp/handshake_io.h"
#include "collectives/transport/tcp/wire.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Makes one link to a peer that may be reached at any of several addresses, or be met at none of them by somebody else.
// The addresses are tried in their order, the next one when the one before has failed or `step` later, whichever is
// sooner. The first that answers as a worker of ours does is told the claim, and the others are let go: so the peer
// never gets two links. Only if that one turns out to be somebody else (another worker of the job, a process without
// its key) do the others go on, without it.
//
// One thread. A forked child must only destroy it.
class Dial {
 public:
  struct Options {
    // An address that leads nowhere must not cost seconds; one that answers does so sooner.
    absl::Duration step = absl::Milliseconds(100);
    // What took the claim and says nothing is given up for the addresses that are left, if there are any: the listener
    // of a peer proves itself at once, unless its machine is in trouble.
    absl::Duration proof_timeout = absl::Seconds(10);
  };

  // Begins with the first of `endpoints` ("ADDRESS:PORT", at least one). `key` is the job's. Errors: the system's.
  static absl::StatusOr<Dial> Begin(const std::vector<std::string>& endpoints, absl::string_view key,
                                    const LinkClaim& claim, Options options);

  // Goes on without blocking: whether the link is proven. kUnavailable when every address has failed: "to ADDRESS:PORT:
  // why" for each. There is no other end to it: a peer that is silent may be so because it is stopped.
  absl::StatusOr<bool> Advance();

  // Readable (POLLIN) when Advance can do something; before the first call as well.
  int fd() const { return poll_.get(); }

  // Once proven, the link and where it leads to.
  UniqueFd TakeFd();
  const std::string& endpoint() const { return attempts_[*proven_].endpoint; }

  // What has become of each address so far: "to ADDRESS:PORT: no answer yet; to ...".
  std::string Describe() const;

 private:
  struct Attempt {
    std::string endpoint;
    absl::optional<HandshakeIo> io;  // none: not begun, let go, or failed
    std::string failure;             // empty: not failed
  };

  Dial(const std::vector<std::string>& endpoints, absl::string_view key, const LinkClaim& claim, Options options);

  // All take the place of an attempt.
  void Start(size_t at);
  void AdvanceOne(size_t at);
  void Claim(size_t at);
  void Fail(size_t at, absl::string_view why);
  void Drop(size_t at);
  bool Watch(size_t at, int operation, short events);

  void ExpireClaim(Instant now);
  void StartDue(Instant now);
  void ArmTimer(Instant now);
  // The next one to begin; as many as there are when there is none.
  size_t NextIdle() const;

  std::string key_;
  LinkClaim claim_;
  Options options_;
  UniqueFd poll_;  // epoll: of the attempts and the timer
  UniqueFd timer_;
  std::vector<Attempt> attempts_;
  Instant next_start_;              // when the next address is due
  absl::optional<size_t> claimed_;  // told the claim
  Instant claim_expires_;
  absl::optional<size_t> proven_;
};

}  // namespace farandole
