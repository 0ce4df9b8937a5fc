#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "driver/runtime/output_sink.h"
#include "launcher/exec/console_writer.h"
#include "launcher/exec/line_tail.h"
#include "launcher/exec/output_files.h"
#include "launcher/exec/output_formatter.h"
#include "tools/base/mutex.h"

namespace farandole {

struct OutputMuxOptions {
  // Borrowed.
  int stdout_fd = 1;
  int stderr_fd = 2;
  bool timestamps = false;
  // --output-filename; empty: none.
  std::string directory;
  int np = 1;
};

// Lines from many workers, and the launcher's own, to one terminal and to files: "[3]<stdout>:text" on stdout,
// "[3]<stderr>:text" on stderr, whole lines (see output_formatter.h). Remembers the last lines of each worker's stderr
// for the final report.
//
// Threads: Write and End come from one thread, which waits while the terminal does; every other method may be called
// from any thread, and those for the launcher's own lines do not block.
class OutputMux : public OutputSink {
 public:
  // Errors: of the system, for the files and folders.
  static absl::StatusOr<std::unique_ptr<OutputMux>> Create(const OutputMuxOptions& options);

  void Write(const WorkerId& worker, int rank, OutputStream stream, absl::string_view data) override;
  void End(const WorkerId& worker, int rank) override;

  // Lines of the launcher itself on stderr; '\n' is added.
  void Note(absl::string_view lines);

  // The one line while the job starts, shown until EndProgress or the first output of a worker; ignored after that.
  void Progress(absl::string_view text);
  void EndProgress();

  // The last lines that `worker` wrote to stderr, oldest first.
  std::vector<std::string> LastErrorLines(const WorkerId& worker) const;

  // Blocks until everything is written.
  void Flush() { console_.Flush(); }
  // Stops writing to the console, so that nothing waits for a reader that is stuck.
  void Abandon() { console_.Abandon(); }

 private:
  OutputMux(const OutputMuxOptions& options, absl::optional<OutputFiles> files);
  void WriteFile(int rank, OutputStream stream, absl::string_view stamp, absl::string_view data, bool* inside_line);

  const bool timestamps_;
  ConsoleWriter console_;
  absl::optional<OutputFiles> files_;                              // of the output's thread
  std::map<std::pair<WorkerId, OutputStream>, bool> inside_line_;  // in the files; of the output's thread

  mutable Mutex mutex_;
  OutputFormatter formatter_ ABSL_GUARDED_BY(mutex_);
  bool progress_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<WorkerId, LineTail> error_tails_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
