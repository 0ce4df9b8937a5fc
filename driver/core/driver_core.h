#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "driver/core/actions.h"
#include "driver/core/driver_config.h"
#include "driver/core/driver_view.h"
#include "driver/core/events.h"
#include "tools/base/instant.h"

namespace farandole {

// Decides, for one job, which workers run where, which rank each has, and when and how the job ends. A pure state
// machine: it performs no I/O, starts no thread, reads no clock, and draws incarnations only from the seed it was
// given, so the same calls in the same order give the same actions.
//
//   WAITING --all agents ready--> FORMING --all joined--> RUNNING        (a program without our library stays in
//   FORMING
//                                    ^                       |            and may succeed from there)
//                                    +-- all left, one joins +
//   any of them --failure, interrupt, or all exited--> ENDING --nothing left--> SUCCEEDED / FAILED
//
// Event handlers only update tables; one Reconcile compares what should be with what is and emits the difference, each
// action with its reason. With nothing to do it emits nothing. What is about another incarnation or generation is
// counted and dropped at one gate, before any other rule.
//
// A stretch in which the driver itself did not run (stopped by Ctrl-Z, a suspended machine) is not held against the
// agents: a gap between two calls longer than `lost_after` / 2 moves every pending deadline by the gap.
//
// Thread-compatible: the caller serialises all calls.
class DriverCore {
 public:
  // `config` has passed Validate().
  DriverCore(DriverConfig config, uint64_t seed);
  ~DriverCore();

  // Begins the job. Called once, before any Step or Tick.
  void Start(Instant now, Actions* actions);

  // Applies `event`, observed at `now`, and appends to `*actions` what must be done about it. `now` is not earlier than
  // in any previous call.
  void Step(Instant now, const Event& event, Actions* actions);

  // Lets time alone have its effect: lost heartbeats, overrun graces and timeouts.
  void Tick(Instant now, Actions* actions);

  // The earliest time at which Tick() should be called: something could be decided, or, while anything is waited for,
  // it is time to look whether the driver was suspended. Infinite when nothing is waited for. The caller arms one timer
  // for it; there are no others.
  Instant NextDeadline() const;

  // OK, or an Internal error that names the first invariant that fails.
  absl::Status CheckInvariants() const;

  // A copy, for people, tests and the status page.
  DriverView View() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace farandole
