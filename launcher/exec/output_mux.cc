#include "launcher/exec/output_mux.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Whether two descriptors are the same terminal, pipe or file.
bool AreOneSurface(int a, int b) {
  struct stat of_a, of_b;
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputMux>> OutputMux::Create(const OutputMuxOptions& options) {
  absl::optional<OutputFiles> files;
  if (!options.directory.empty()) {
    ASSIGN_OR_RETURN(files, OutputFiles::Create(options.directory, options.np), std::move(_) << "--output-filename");
  }
  return std::unique_ptr<OutputMux>(new OutputMux(options, std::move(files)));
}

OutputMux::OutputMux(const OutputMuxOptions& options, absl::optional<OutputFiles> files)
    : timestamps_(options.timestamps),
      console_(options.stdout_fd, options.stderr_fd),
      files_(std::move(files)),
      formatter_(AreOneSurface(options.stdout_fd, options.stderr_fd)) {}

void OutputMux::Write(const WorkerId& worker, int rank, OutputStream stream, absl::string_view data) {
  const std::string stamp = timestamps_ ? OutputStamp(absl::Now(), absl::LocalTimeZone()) : "";
  {
    MutexLock lock(&mutex_);
    progress_ended_ = true;
    console_.Enqueue(stream, formatter_.Output(worker, rank, stream, stamp, data));
    if (stream == OutputStream::kStderr) error_tails_[worker].Append(data);
  }
  if (files_) WriteFile(rank, stream, stamp, data, &inside_line_[{worker, stream}]);
  console_.WaitForRoom();
}

void OutputMux::WriteFile(int rank, OutputStream stream, absl::string_view stamp, absl::string_view data,
                          bool* inside_line) {
  std::string text;
  AppendPrefixed(absl::StrCat(stamp, OutputPrefix(rank, stream)), data, inside_line, &text);
  if (const absl::Status status = files_->Write(rank, stream, text); !status.ok()) {
    Note(absl::StrCat("farandole: --output-filename: ", status.message(), "; the job goes on without this file"));
  }
}

void OutputMux::End(const WorkerId& worker, int rank) {
  inside_line_.erase({worker, OutputStream::kStdout});
  inside_line_.erase({worker, OutputStream::kStderr});
  if (files_) files_->End(rank);
}

void OutputMux::Note(absl::string_view lines) {
  MutexLock lock(&mutex_);
  console_.Enqueue(OutputStream::kStderr, formatter_.Note(absl::StrCat(lines, "\n")));
}

void OutputMux::Progress(absl::string_view text) {
  MutexLock lock(&mutex_);
  if (!progress_ended_) console_.Enqueue(OutputStream::kStderr, formatter_.Progress(text));
}

void OutputMux::EndProgress() {
  MutexLock lock(&mutex_);
  progress_ended_ = true;
  console_.Enqueue(OutputStream::kStderr, formatter_.Progress(""));
}

std::vector<std::string> OutputMux::LastErrorLines(const WorkerId& worker) const {
  MutexLock lock(&mutex_);
  const auto tail = error_tails_.find(worker);
  return tail == error_tails_.end() ? std::vector<std::string>() : tail->second.Lines();
}

}  // namespace farandole
