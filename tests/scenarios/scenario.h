#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/driver_core.h"
#include "driver/core/driver_view.h"
#include "driver/core/events.h"
#include "tools/base/instant.h"

namespace farandole {

// One job and its clock, moved by the commands of a transcript:
//
//   job np=4 hosts=a:2,b:2 [grace=5s start_timeout=30s join_timeout=10m lost_after=3s end_timeout=5s]
//   ready HOST...                       its agent has reported
//   failed HOST WORDS...                its agent is gone; the words are what came back
//   ended HOST...                       its agent has ended
//   silent HOST...                      from now on its agent gives no sign of life
//   started SLOT...                     SLOT is HOST/NUMBER
//   unstartable SLOT errno=2 what=TEXT  the program could not be executed
//   joined SLOT... [after=GENERATION]
//   left SLOT... generation=GENERATION
//   exit SLOT... [code=0 | signal=9]
//   interrupt INT | TERM
//   held                                the workers' output cannot be written at present
//   advance DURATION                    ticks when the core asks for them; agents that are there give signs of life
//   sleep DURATION                      the driver does not run; then one tick
//
// An event about a HOST or SLOT is of its present incarnation; with `stranger` as last word, of another one.
//
// Output: the actions, then what has changed in the view; in `advance`, each with the time since the start. "(nothing)"
// if nothing happened. Invariants are checked after each step; a broken one, or a command that cannot be read, is
// printed as a line that begins with "error:".
class Scenario {
 public:
  std::string Run(const std::vector<std::string>& commands);

 private:
  struct Command;

  void RunOne(const Command& command);
  void StartJob(const Command& command);
  void Advance(absl::Duration time);
  void StepEach(const Command& command);
  void Step(const Event& event);
  void Tick();
  void SignsOfLife();
  void Print(const Actions& actions);
  void PrintChanges(const DriverView& before, const DriverView& after);
  void Line(absl::string_view text);
  void Error(absl::string_view text);

  Incarnation AgentOf(const std::string& host, bool stranger) const;
  WorkerId WorkerOf(const std::string& slot, bool stranger) const;

  std::unique_ptr<DriverCore> core_;
  absl::Duration heartbeat_interval_;
  Instant start_, now_;
  std::set<std::string> silent_;
  bool print_time_ = false;
  std::string output_;
};

}  // namespace farandole
