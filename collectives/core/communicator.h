#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"
#include "collectives/core/tuning.h"
#include "collectives/core/types.h"
#include "tools/base/instant.h"

namespace farandole {

class ShortAllReduce;

// Where the memory lies that a communicator works on.
enum class MemoryKind : uint8_t { kHost, kDevice };

// One rank's membership of a group that can run collectives, valid for exactly one generation. A communicator never
// grows or shrinks: when membership changes it is aborted and a new one is made.
//
// What a collective needs (links, device communicators) is made when it is first needed, within its deadline.
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
// On host memory a collective returns when this rank has its result. On device memory it may return as soon as the
// collective is queued on the stream; Await tells what became of it, and errors may come only there.
//
// All counts are 64-bit; nothing (0 elements, 0 bytes) is allowed everywhere; any alignment.
//
// Thread safety: collectives are called by one thread at a time and in the same order on all ranks. Abort() may be
// called from any thread at any time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual MemoryKind memory() const = 0;

  // Whether an output may be memory that its owner reads and changes as soon as he has the result, in a group whose
  // survivors are to go on after a loss: true if output changes only part by part, each part by its finished result,
  // while every input of the others stays intact, and if finished results stay in this communicator's own memory until
  // every member has them (rules R1 to R3 of replay). If false the caller has to provide for it: by an output of his
  // own that he keeps.
  virtual bool retains_results() const = 0;

  // output[i] = op over all ranks of input[i], `count` elements; every rank receives the same bytes, whatever the
  // transport. `input` is `output` (in place) or does not overlap it. kInvalidArgument unless Combines(dtype, op).
  // kAdasum: the whole tensor is one piece (see Adasum).
  virtual absl::Status AllReduce(const void* input, void* output, int64_t count, DType dtype, ReduceOp op,
                                 Instant deadline) = 0;

  // Adasum in place (Maleki and others, 2020, arXiv:2006.02924): a tree of pairs, each of which becomes
  //   (1 - a.b / (2 |a|^2)) a  +  (1 - a.b / (2 |b|^2)) b
  // for each of `pieces` (element counts; data holds them one after the other) by itself; dots and norms in float64. A
  // side whose squared norm is below sqrt(DBL_MIN) has the coefficient 1. In a group that is no power of two, the ranks
  // from the largest power of two p on are first paired with rank - p.
  virtual absl::Status Adasum(void* data, absl::Span<const int64_t> pieces, DType dtype, Instant deadline) = 0;

  // The reduction of the share of this rank: inputs of all ranks hold the shares of all in rank order, counts[r]
  // elements for rank r, the same list on every rank; `output` gets counts[rank()] and does not overlap `input`. Not
  // for kAdasum.
  virtual absl::Status ReduceScatter(const void* input, void* output, absl::Span<const int64_t> counts, DType dtype,
                                     ReduceOp op, Instant deadline) = 0;

  // Concatenates every rank's bytes in rank order. `bytes[r]` is what rank r gives, the same list on every rank;
  // `output` holds their sum. `input` may stand in its own place inside `output`.
  virtual absl::Status AllGather(absl::Span<const std::byte> input, absl::Span<std::byte> output,
                                 absl::Span<const int64_t> bytes, Instant deadline) = 0;

  // Each rank's block for each rank: `input` holds to[r] bytes for rank r, in rank order, `output` gets from[r] bytes
  // of rank r, in rank order; to[r] here is from[rank()] there. `output` does not overlap `input`.
  virtual absl::Status AllToAll(absl::Span<const std::byte> input, absl::Span<const int64_t> to,
                                absl::Span<std::byte> output, absl::Span<const int64_t> from, Instant deadline) = 0;

  // `data` of `root` replaces `data` of the others; same length on every rank.
  virtual absl::Status Broadcast(absl::Span<std::byte> data, Rank root, Instant deadline) = 0;

  // Returns when every rank has called it.
  virtual absl::Status Barrier(Instant deadline) = 0;

  // Between two different ranks, the others take no part: what one sends the other receives, in order per direction and
  // pair, same length on both. Send may return before the other has it.
  virtual absl::Status Send(absl::Span<const std::byte> data, Rank to, Instant deadline) = 0;
  virtual absl::Status Receive(absl::Span<std::byte> data, Rank from, Instant deadline) = 0;

  // Null if this communicator cannot do that.
  virtual ShortAllReduce* short_allreduce() = 0;

  // Device memory: collectives from now on are queued on this stream (a cudaStream_t). Host memory: ignored.
  virtual void SetStream(void* stream) = 0;

  // Waits until everything called has finished on this rank. Host memory: returns at once.
  virtual absl::Status Await(Instant deadline) = 0;

  // From the next collective on; on all ranks between the same two collectives.
  virtual void Tune(const CollectiveTuning& tuning) = 0;

  // Makes the running collective and all later ones fail with kCancelled and this message, promptly and without the
  // help of any peer. Idempotent: the first reason stays. Does not block.
  virtual void Abort(absl::string_view reason) = 0;
};

// Allreduces so short that waiting for them costs more than their bytes, cut in two, so that a thread which waits for
// the result may run them itself, and yet need not stay when a peer keeps it waiting. One is a collective as any other:
// nothing else is called on the communicator between its Begin and its end.
class ShortAllReduce {
 public:
  virtual ~ShortAllReduce() = default;

  // Largest tensor.
  virtual int64_t max_bytes() const = 0;

  // In place, count * SizeOf(dtype) <= max_bytes(). true: it is done. false: a peer has not come by `patience`; Finish
  // has to be called, by any thread, and `data` stays borrowed until then. Errors are those of AllReduce.
  virtual absl::StatusOr<bool> Begin(void* data, int64_t count, DType dtype, ReduceOp op, Instant patience) = 0;
  virtual absl::Status Finish(Instant deadline) = 0;
};

}  // namespace farandole
