#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "collectives/core/communicator.h"
#include "collectives/core/group.h"
#include "collectives/engine/request.h"
#include "collectives/transport/control_channel.h"

namespace farandole {

// What an average is divided by while some ranks have joined.
enum class JoinDivisor : uint8_t {
  kAll,     // the size of the group, as the original does
  kActive,  // the ranks that have not joined
};

// Every tunable of the engine, with its environment variable where the original has one.
struct EngineConfig {
  // Requests that are ready together are fused up to this many bytes; 0 turns fusion off. HOROVOD_FUSION_THRESHOLD.
  int64_t fusion_threshold_bytes = int64_t{128} << 20;

  // Longest that a collective may move bytes without finishing; past it the peers are taken for lost.
  // HOROVOD_GLOO_TIMEOUT_SECONDS is the original's nearest; ours bounds only data movement, never the wait for a late
  // rank.
  absl::Duration data_timeout = absl::InfiniteDuration();

  // How long rank 0 collects what becomes ready before it is sequenced, so that more can be fused. 0: nothing waits but
  // for the data plane to have room.
  absl::Duration cycle_time = absl::ZeroDuration();

  // Requests that were enqueued together are fused only with each other. HOROVOD_DISABLE_GROUP_FUSION.
  bool fuse_groups_apart = false;

  JoinDivisor join_divisor = JoinDivisor::kAll;

  // A request that waits longer than this for other ranks is reported, with the ranks that are missing, then at growing
  // gaps. HOROVOD_STALL_CHECK_TIME_SECONDS; HOROVOD_STALL_CHECK_DISABLE=1 means never (infinite).
  absl::Duration stall_warning = absl::Seconds(60);

  // A request that waits longer than this for other ranks ends the group: every rank gets kAborted with the names.
  // Infinite: never. HOROVOD_STALL_SHUTDOWN_TIME_SECONDS.
  absl::Duration stall_shutdown = absl::InfiniteDuration();
};

// The background part of a worker: takes named requests from any thread in any order, agrees with the other ranks on
// what is ready everywhere, fuses, and runs collectives in one order on all ranks. The order is rank 0's (a total
// sequence).
//
// Two threads of its own: one negotiates (ControlChannel), one moves data (Communicator), so negotiation goes on
// meanwhile. Neither polls: an idle engine uses no processor.
//
// Errors of a request:
//   kInvalidArgument     at Enqueue: a duplicate name, an unknown root, a missing buffer. Nothing was queued.
//   kFailedPrecondition  ranks disagree about a name (shape, type, operation, root, scale): the same message on every
//   rank,
//                        naming tensor, ranks and both descriptions. The engine stays usable.
//   kAborted             the engine was shut down here or by another rank (the message says which).
//   kUnavailable         a peer was lost; the engine is finished.
// Completion callbacks run on the engine's threads, or on one that is in Enqueue or Assist, in the order of completion,
// exactly once per accepted request; they must not block and may call Enqueue.
//
// A rank that has joined (kJoin) takes part in what the others ask for until all have joined:
//   allreduce      it gives zeros to Sum, Average and Adasum, and what changes nothing to Min, Max and Product; an
//                  Average is divided as EngineConfig::join_divisor says
//   reducescatter  the same; its share is dropped
//   allgather      it gives no rows
//   alltoall       it gives no rows; those that the others have for it are dropped
//   broadcast      from another rank: it takes part. From itself: an error for all who ask
//   barrier        it counts as arrived
//   send, receive  with it: an error
//
// A user's output memory changes only when its operation has finished (rule R1 of replay): inputs are staged first.
//
// Thread-safe. Shutdown() and the destructor must not be called from a completion callback.
class Engine {
 public:
  using Done = std::function<void(absl::Status, Result)>;

  // `spec` is used for messages. The engine owns both means of communication and starts its threads.
  static std::unique_ptr<Engine> Create(EngineConfig config, GroupSpec spec, std::unique_ptr<Communicator> communicator,
                                        std::unique_ptr<ControlChannel> channel);

  virtual ~Engine() = default;

  // Queues all of `requests` or none of them; `done[i]` belongs to `requests[i]`. Requests of one call are a group:
  // they are run only when all of them are ready everywhere, and are not split from each other by fusion with others.
  virtual absl::Status Enqueue(std::vector<Request> requests, std::vector<Done> done) = 0;

  // Lends the calling thread, which waits for something, to the engine: it negotiates and runs short operations, so
  // that they need no switch to another thread. Returns when done() is true, at `until`, or when there has been nothing
  // to do for some hundreds of microseconds. done() is called often; it must be cheap and thread-safe.
  virtual void Assist(const std::function<bool()>& done, Instant until) = 0;

  // Leaves the group in order: what was sequenced before is still run, other requests fail with kAborted here and on
  // every rank. Blocks until this rank's part is over, at most until `deadline` (then aborts). Idempotent.
  virtual void Shutdown(Instant deadline) = 0;

  // Fails everything promptly with kUnavailable and `reason`. From any thread; does not block.
  virtual void Abort(absl::string_view reason) = 0;
};

}  // namespace farandole
