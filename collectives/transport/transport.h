#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"
#include "tools/base/instant.h"

namespace farandole {

// Ordered, reliable byte streams between this rank and the others of one group in one generation. Links are made when
// first used, so a ring connects to its neighbours only.
//
// Implementations: tcp/ (between hosts), shm/ (inside a host), inproc/ (threads of one process, scripted faults; for
// tests). One conformance suite (tests/conformance/transport_test) runs over all of them.
//
// Errors: those of Communicator, and kInternal (see SendRecv). The first one but kInvalidArgument finishes the
// transport: every later call returns kFailedPrecondition with that error's text, or kCancelled again after an Abort().
//
// Thread safety: SendRecv by one thread at a time; Abort() from any thread at any time.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Sends all of `out` to `to` while receiving all of `in` from `from`, whichever can go on at the moment; returns when
  // both are done (sent: in the hands of the transport, `out` may be changed). Both directions progress together, so a
  // ring of ranks that all send first does not lock up. An empty span means nothing to do in that direction and its
  // peer is ignored. `operation` is the collective's number, the same on all ranks: it travels with the bytes, and
  // bytes of another one are an error (kInternal: the ranks have called different collectives). What is received in one
  // call was sent in one call: lengths must agree, or that error.
  virtual absl::Status SendRecv(uint64_t operation, Rank to, absl::Span<const std::byte> out, Rank from,
                                absl::Span<std::byte> in, Instant deadline) = 0;

  // As Communicator::Abort.
  virtual void Abort(absl::string_view reason) = 0;
};

}  // namespace farandole
