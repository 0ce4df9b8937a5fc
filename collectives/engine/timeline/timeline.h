#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/engine/timeline/trace_text.h"
#include "tools/base/instant.h"
#include "tools/base/mutex.h"
#include "tools/base/unique_fd.h"

namespace farandole {

struct TimelineOptions {
  std::string path;                                   // is truncated
  Instant origin;                                     // where `ts` is 0, in the clock of rank 0
  absl::Duration ahead = absl::ZeroDuration();        // of rank 0's clock before this machine's (ClockOffset)
  int64_t origin_epoch_micros = 0;                    // the same point in wall time, microseconds since 1970
  size_t queue_events = 65536;                        // more than these waiting: dropped and counted
  absl::Duration interval = absl::Milliseconds(100);  // how long an event may wait for the disk
};

// One trace file, from its opening to its end; a run-time start and stop is a Timeline made and destroyed.
//
// Record never waits for the disk. A thread of its own writes what has come, one write per batch that begins on the
// closing bracket and ends with a new one: the file is whole JSON between any two writes, and so when the process is
// killed. (The kernel may cut one write short when the kill falls into it; Merge reads such a file too.) A write that
// fails ends the file; later events are dropped, and status() tells.
//
// Record and status: any thread.
class Timeline {
 public:
  // Errors: those of open(2) and write(2) for the file, with its name.
  static absl::StatusOr<std::unique_ptr<Timeline>> Start(TimelineOptions options);
  // Writes what is waiting.
  ~Timeline();

  // `at` is this machine's clock; event.micros is set from it.
  void Record(Instant at, TraceEvent event);
  absl::Status status() const;

 private:
  Timeline(TimelineOptions options, UniqueFd file);
  int64_t MicrosOf(Instant at) const;
  void Loop();
  std::string TextOf(const std::vector<TraceEvent>& batch, int64_t dropped);
  // Replaces the closing bracket by `text` and a new one.
  absl::Status Write(std::string text);

  const TimelineOptions options_;
  const UniqueFd file_;
  TraceText text_;          // the writer's
  int64_t bracket_at_ = 0;  // the writer's

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<TraceEvent> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread writer_;
};

}  // namespace farandole
