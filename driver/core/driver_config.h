#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace farandole {

// A host and how many workers it may have, in the order of the user.
struct HostSlots {
  std::string name;
  int slots = 1;
};

// Every tunable of the driver's core.
struct DriverConfig {
  // Processes of the job.
  int np = 1;

  // Where they may run. Ranks are dealt host by host in this order; slots beyond np stay empty (the original starts a
  // worker in every slot, whatever -np says: contract 1.5).
  std::vector<HostSlots> hosts;

  // Between TERM and KILL for a worker that must end. The original has 5 s.
  absl::Duration grace = absl::Seconds(5);

  // From StartAgent to AgentReady; a host that is not there by then fails the job. HOROVOD_START_TIMEOUT; the original
  // has 30 s.
  absl::Duration start_timeout = absl::Seconds(30);

  // From the first worker's init to the last one's. Longer than the slowest import and data set; past it the job fails
  // and names the ranks that never called init. The original hangs for its Gloo time-out and then aborts.
  absl::Duration join_timeout = absl::Minutes(10);

  // Agents send a sign of life this often, and are taken for lost after `lost_after` without one. The first is what a
  // lost host costs in detection, the second guards against a busy machine: at least four intervals.
  absl::Duration heartbeat_interval = absl::Milliseconds(250);
  absl::Duration lost_after = absl::Seconds(3);

  // How long the end of a lost peer is waited for when a worker has failed that had told of the loss. Two reports on
  // their way from two hosts are milliseconds apart; an exit that dumps core may take its time.
  absl::Duration blame_wait = absl::Seconds(1);

  // How long agents may take to end after EndAgent before the job ends without them.
  absl::Duration end_timeout = absl::Seconds(5);

  // All problems, a sentence each; empty when there are none.
  std::vector<std::string> Validate() const;
};

}  // namespace farandole
