#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/agent/core/bootstrap.h"

namespace farandole {

// The agent of one host: one loop on the main thread that owns the link to the driver, the workers' processes, their
// output and what their libraries talk to.
//
//   registering --welcome--> serving --End--> every worker is killed, all that they wrote is sent, the stream is ended:
//   exit 0
//                               |
//                               +-- the driver is gone (its stream, or standard input, has ended), or SIGTERM -->
//                                   TERM, after the grace KILL: exit 1
//
// After any end no process that descends from a worker is left.
//
// Run() belongs to the main thread of a process in which SIGTERM is blocked and SIGPIPE ignored, and which is a
// subreaper (main.cc sees to it). Standard input tells by its end that the starter is gone, unless the bootstrap says
// that it may end.
class Agent {
 public:
  // Opens its sockets and calls back the driver, for 10 s at most. Blocks. Errors: those of the system; Unavailable: no
  // address of the driver answers, with each and its reason.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(Bootstrap bootstrap);
  virtual ~Agent() = default;

  // Returns the process's exit code.
  virtual int Run() = 0;
};

}  // namespace farandole
