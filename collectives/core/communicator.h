#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"
#include "collectives/core/types.h"
#include "tools/base/instant.h"

namespace farandole {

// One rank's membership of a group that can run collectives, valid for exactly one generation. A communicator never
// grows or shrinks: when membership changes it is aborted and a new one is made.
//
// Errors, for every collective:
//   kUnavailable         a peer was lost (the message names it); the group is finished.
//   kDeadlineExceeded    `deadline` passed; the group is finished.
//   kCancelled           Abort() was called; the group is finished. The message is the reason given to Abort().
//   kInternal            the ranks have called different collectives; the group is finished.
//   kFailedPrecondition  an earlier call finished the group with an error; its text is in the message.
//   kInvalidArgument     this rank's own arguments; nothing was sent, the group is unharmed.
// After one of the first four the output is unspecified on every rank, and no rank may assume that another one saw the
// same error. `input` is never written, unless it is `output`.
//
// Thread safety: collectives are called by one thread at a time and in the same order on all ranks. Abort() may be
// called from any thread at any time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // output[i] = op over all ranks of input[i], `count` elements; every rank receives the same bytes, whatever the
  // transport. `input` is `output` (in place) or does not overlap it. Any alignment.
  virtual absl::Status AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                                 Instant deadline) = 0;

  // Concatenates every rank's bytes in rank order. `bytes[r]` is what rank r gives, the same list on every rank;
  // `output` holds their sum. `input` may stand in its own place inside `output`.
  virtual absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                                 absl::Span<const int64_t> bytes, Instant deadline) = 0;

  // `data` of `root` replaces `data` of the others; same length on every rank.
  virtual absl::Status Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) = 0;

  // Returns when every rank has called it.
  virtual absl::Status Barrier(Instant deadline) = 0;

  // Makes the running collective and all later ones fail with kCancelled and this message, promptly and without the
  // help of any peer. Idempotent: the first reason stays. Does not block.
  virtual void Abort(absl::string_view reason) = 0;
};

}  // namespace farandole
