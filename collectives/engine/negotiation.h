#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "collectives/core/communicator.h"
#include "collectives/core/group.h"
#include "collectives/engine/coordinator.h"
#include "collectives/engine/executor.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/wire.h"
#include "collectives/transport/control_channel.h"
#include "tools/base/mutex.h"

namespace farandole {

// One rank's side of the agreement on what runs next: tells rank 0 of new requests, hands what rank 0 has sequenced to
// the executor. On rank 0 it feeds the Coordinator as well. There is a thread for that, which sleeps whenever there is
// nothing to do.
//
// Other threads may do its work as well (Advance), one at a time, if the channel has SharedWaiting; then the thread
// sleeps without holding anything. No wake-up is lost: who has put something in (a request, a wish to leave) either
// does the work itself or wakes the thread, and what comes from other ranks wakes it unless somebody attends the
// channel, who looks again after having said that he does not any more.
//
//   OPEN --Leave, Fail, Abort, a closing list, rank 0 lost--> CLOSED (the executor is told to finish; Run returns)
class Negotiation {
 public:
  // All outlive it.
  Negotiation(CoordinatorConfig config, GroupSpec spec, ControlChannel* channel, PendingTable* pending,
              Executor* executor, Communicator* communicator);

  // Runs until CLOSED, on one thread; the channel is closed then.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_, work_);

  // Does what there is to do, without waiting, if nobody else is at it: whether it could.
  bool TryAdvance() ABSL_LOCKS_EXCLUDED(mutex_, work_);

  // From any thread; none blocks; the first Fail or Abort counts.
  //
  // This rank takes part in what is sequenced before the group has heard of it, and then no more.
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);
  // This rank cannot go on: the others are told why.
  void Fail(std::string why) ABSL_LOCKS_EXCLUDED(mutex_);
  // The group is over for this rank, at once.
  void Abort(absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool is_coordinator() const { return spec_.rank == 0; }

  Instant NextDeadline() const;
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_) ABSL_LOCKS_EXCLUDED(mutex_);
  void WarnOfStalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_);
  void SendNews() ABSL_LOCKS_EXCLUDED(mutex_);
  void Distribute();
  void Handle(ControlChannel::Event event);
  void HandleLoss(Rank peer, absl::string_view how);
  void HandleMessage(Rank from, const std::string& message);
  void HandleWhatWaits();
  void Obey(ResponseList list);
  absl::Status Start(Response response);
  void Close(absl::Status status);
  void CloseAborted() ABSL_LOCKS_EXCLUDED(mutex_);

  const GroupSpec spec_;
  ControlChannel* const channel_;
  PendingTable* const pending_;
  Executor* const executor_;
  Communicator* const communicator_;

  SharedWaiting* const shared_;  // the channel's; null: Run's thread keeps work_ while it waits

  Mutex work_ ABSL_ACQUIRED_BEFORE(mutex_);  // held by who does the work, and guards what follows

  Coordinator coordinator_;  // used on rank 0
  bool leave_sent_ = false;
  bool failure_sent_ = false;
  uint64_t last_sequence_ = 0;
  bool closed_ = false;
  Instant sleeps_until_ = Instant::Infinite();  // at most, Run's thread

  Mutex mutex_;
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  std::string failure_ ABSL_GUARDED_BY(mutex_);
  absl::optional<std::string> aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
