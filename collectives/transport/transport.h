#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"
#include "tools/base/instant.h"

namespace farandole {

// Ordered, reliable messages between this rank and the others of one group in one generation. Links are made when first
// used, so a ring connects to its neighbours only.
//
// What is posted goes out whenever this rank is in Receive or Flush, so that a rank can pass a part on while the next
// one comes in, and nobody locks up because all send first.
//
// `operation` is the collective's number, the same on all ranks: it travels with the bytes, and bytes of another one
// are an error (kInternal: the ranks have called different collectives). What is received in one call was posted in one
// call: lengths must agree, or that error.
//
// Implementations: tcp/ (between hosts), shm/ (inside a host), inproc/ (threads of one process, scripted faults; for
// tests). One conformance suite (tests/conformance/transport_test) runs over all of them.
//
// Errors: those of Communicator, and kInternal. The first one but kInvalidArgument finishes the transport: every later
// call returns kFailedPrecondition with that error's text, or kCancelled again after an Abort(). After an error nothing
// that was posted is looked at any more.
//
// Thread safety: Post, Receive and Flush by one thread at a time; Abort() from any thread at any time.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Queues `bytes` for `to` behind what was posted to it before, and sends what can be sent at once; does not wait.
  // `bytes` stay borrowed until Flush returns, or until something has come that could not be sent by anybody before
  // `to` had all of them. Nothing happens for no bytes.
  virtual absl::Status Post(uint64_t operation, Rank to, absl::Span<const std::byte> bytes) = 0;

  // Fills `bytes` with the next message of `from`, and goes on sending meanwhile. Does not wait for no bytes.
  virtual absl::Status Receive(uint64_t operation, Rank from, absl::Span<std::byte> bytes, Instant deadline) = 0;

  // Until all that was posted is in the hands of the transport, and its memory may be changed.
  virtual absl::Status Flush(Instant deadline) = 0;

  // The three in one. An empty span means nothing to do in that direction and its peer is ignored.
  absl::Status SendRecv(uint64_t operation, Rank to, absl::Span<const std::byte> out, Rank from,
                        absl::Span<std::byte> in, Instant deadline) {
    if (absl::Status status = Post(operation, to, out); !status.ok()) return status;
    if (absl::Status status = Receive(operation, from, in, deadline); !status.ok()) return status;
    return Flush(deadline);
  }

  // As Communicator::Abort.
  virtual void Abort(absl::string_view reason) = 0;
};

}  // namespace farandole
