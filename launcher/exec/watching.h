#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "driver/core/driver_view.h"
#include "driver/core/host_step.h"
#include "driver/core/ids.h"
#include "launcher/exec/output_mux.h"
#include "tools/base/ids.h"

namespace farandole {

// What a person sees of a job besides its output: the progress line while it starts, with --verbose a line for each
// step of each host and each listener, and when the job began to fail. On the driver's loop.
class Watching {
 public:
  // `output` outlives this. `progress`: whether to show the progress line.
  Watching(OutputMux* output, bool verbose, bool progress) : output_(output), verbose_(verbose), progress_(progress) {}

  void OnView(const DriverView& view);
  // A line of --verbose.
  void Note(absl::string_view text);

  absl::optional<absl::Time> ended_at() const { return ended_at_; }

 private:
  void NotePlaces(const DriverView& view);
  void NoteSteps(const DriverView& view);
  void NoteListeners(const DriverView& view);

  OutputMux* const output_;
  const bool verbose_;
  bool progress_;
  const absl::Time began_at_ = absl::Now();
  absl::optional<absl::Time> ended_at_;
  std::set<std::string> listeners_;
  std::set<WorkerId> started_;
  Generation generation_;
  std::map<std::string, std::pair<HostStep, std::string>> standings_;
};

}  // namespace farandole
