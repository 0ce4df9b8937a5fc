#pragma once

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "driver/core/ids.h"
#include "driver/runtime/output_sink.h"

namespace farandole {

// "Mon Jan 20 12:00:01 2020", as asctime(3) has it.
std::string OutputStamp(absl::Time at, absl::TimeZone zone);

// Appends `data` to `*text` with `prefix` before each piece, cut after each '\n' and each '\r' ("\r\n" is one end).
// `*inside_line`: whether the last piece had no end, so that what comes goes on with it and has no prefix.
void AppendPrefixed(absl::string_view prefix, absl::string_view data, bool* inside_line, std::string* text);

// Decides what a terminal or a pipe is given so that the output of many workers and the launcher's own lines are whole
// lines each with one prefix, in the order in which they came. Pure; thread-compatible.
//
// When a worker's line is unfinished (it prints and then thinks, or a line longer than the agent holds) and another one
// writes, the unfinished line is ended, and its rest begins a new one, with the prefix again.
class OutputFormatter {
 public:
  // `one_surface`: stdout and stderr are the same terminal, pipe or file.
  explicit OutputFormatter(bool one_surface) : one_surface_(one_surface) {}

  // What to write to `stream` for `data` of this worker.
  std::string Output(const WorkerId& worker, OutputStream stream, absl::string_view prefix, absl::string_view data);

  // What to write to stderr for lines of the launcher itself, which end with '\n'.
  std::string Note(absl::string_view lines);

  // What to write to stderr to show `text` as the progress line, in place of the one before; empty text removes it. It
  // is also removed by whatever comes on the same surface, and not shown inside an unfinished line.
  std::string Progress(absl::string_view text);

 private:
  using Writer = std::pair<WorkerId, OutputStream>;
  struct Surface {
    absl::optional<Writer> inside_line_of;
    bool progress_shown = false;
  };

  Surface& SurfaceOf(OutputStream stream) { return surfaces_[one_surface_ || stream == OutputStream::kStdout ? 0 : 1]; }

  const bool one_surface_;
  Surface surfaces_[2];
};

}  // namespace farandole
