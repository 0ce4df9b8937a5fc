#pragma once

#include <atomic>
#include <cstdint>
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
#include "launcher/cli/output_template.h"
#include "launcher/exec/console_writer.h"
#include "launcher/exec/function_folder.h"
#include "launcher/exec/instance_files.h"
#include "launcher/exec/line_tail.h"
#include "launcher/exec/output_files.h"
#include "launcher/exec/output_formatter.h"
#include "tools/base/ids.h"
#include "tools/base/mutex.h"

namespace farandole {

struct OutputMuxOptions {
  // Borrowed.
  int stdout_fd = 1;
  int stderr_fd = 2;
  // What stands before each line.
  OutputTemplate prefix;
  // --output-filename; empty: none.
  std::string directory;
  int np = 1;
  // --output-dir, and the name of the job's own folder in it; empty: none.
  std::string instance_directory;
  std::string job;
  // Where the workers' results go; outlives the mux. Null: results are dropped.
  FunctionFolder* results = nullptr;
};

// Lines from many workers, and the launcher's own, to one terminal and to files: as a rule "[3]<stdout>:text" on
// stdout,
// "[3]<stderr>:text" on stderr, whole lines (see output_formatter.h). Remembers the last lines of each worker's stderr
// for the final report. Results are no output: they go to their files and nowhere else.
//
// Threads: Write and End come from one thread, which waits while the terminal does; every other method may be called
// from any thread, and those for the launcher's own lines do not block.
class OutputMux : public OutputSink {
 public:
  // Errors: of the system, for the files and folders.
  static absl::StatusOr<std::unique_ptr<OutputMux>> Create(const OutputMuxOptions& options);

  void Write(const WorkerId& worker, int rank, OutputStream stream, absl::string_view data) override;
  void End(const WorkerId& worker, int rank) override;

  // Each worker's place in a generation, for the index of --output-dir, and for {gen}: zero before there is one.
  void Place(Generation generation, const std::vector<PlacedWorker>& workers);

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
  OutputMux(const OutputMuxOptions& options, absl::optional<OutputFiles> files,
            std::unique_ptr<InstanceFiles> instances);
  std::string PrefixFor(const WorkerId& worker, int rank, OutputStream stream) const;
  void WriteFile(int rank, OutputStream stream, absl::string_view prefix, absl::string_view data, bool* inside_line);
  void WriteInstance(const WorkerId& worker, OutputStream stream, absl::string_view data);
  void WriteResult(int rank, absl::string_view data);

  const OutputTemplate prefix_;
  std::atomic<uint64_t> generation_ = 0;
  ConsoleWriter console_;
  absl::optional<OutputFiles> files_;                              // of the output's thread
  const std::unique_ptr<InstanceFiles> instances_;                 // may be null
  FunctionFolder* const results_;                                  // may be null; of the output's thread
  std::map<std::pair<WorkerId, OutputStream>, bool> inside_line_;  // in the files; of the output's thread

  mutable Mutex mutex_;
  OutputFormatter formatter_ ABSL_GUARDED_BY(mutex_);
  bool progress_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<WorkerId, LineTail> error_tails_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
