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
  std::unique_ptr<InstanceFiles> instances;
  if (!options.instance_directory.empty()) {
    ASSIGN_OR_RETURN(instances, InstanceFiles::Create(options.instance_directory, options.job),
                     std::move(_) << "--output-dir");
  }
  return std::unique_ptr<OutputMux>(new OutputMux(options, std::move(files), std::move(instances)));
}

OutputMux::OutputMux(const OutputMuxOptions& options, absl::optional<OutputFiles> files,
                     std::unique_ptr<InstanceFiles> instances)
    : prefix_(options.prefix),
      console_(options.stdout_fd, options.stderr_fd),
      files_(std::move(files)),
      instances_(std::move(instances)),
      results_(options.results),
      formatter_(AreOneSurface(options.stdout_fd, options.stderr_fd)) {}

void OutputMux::Write(const WorkerId& worker, int rank, OutputStream stream, absl::string_view data) {
  if (stream == OutputStream::kResult) return WriteResult(rank, data);
  const std::string prefix = PrefixFor(worker, rank, stream);
  {
    MutexLock lock(&mutex_);
    progress_ended_ = true;
    console_.Enqueue(stream, formatter_.Output(worker, stream, prefix, data));
    if (stream == OutputStream::kStderr) error_tails_[worker].Append(data);
  }
  if (files_) WriteFile(rank, stream, prefix, data, &inside_line_[{worker, stream}]);
  if (instances_ != nullptr) WriteInstance(worker, stream, data);
  console_.WaitForRoom();
}

std::string OutputMux::PrefixFor(const WorkerId& worker, int rank, OutputStream stream) const {
  const std::string time = prefix_.uses_time() ? OutputStamp(absl::Now(), absl::LocalTimeZone()) : "";
  OutputTemplate::Fields place;
  place.rank = rank;
  place.host = worker.slot.host;
  place.local_rank = worker.slot.slot;  // as long as membership does not change
  place.stream = stream == OutputStream::kStdout ? "stdout" : "stderr";
  place.generation = static_cast<int64_t>(generation_);
  place.time = time;
  return prefix_.Expand(place);
}

void OutputMux::WriteFile(int rank, OutputStream stream, absl::string_view prefix, absl::string_view data,
                          bool* inside_line) {
  std::string text;
  AppendPrefixed(prefix, data, inside_line, &text);
  if (const absl::Status status = files_->Write(rank, stream, text); !status.ok()) {
    Note(absl::StrCat("farandole: --output-filename: ", status.message(), "; the job goes on without this file"));
  }
}

void OutputMux::WriteInstance(const WorkerId& worker, OutputStream stream, absl::string_view data) {
  if (const absl::Status status = instances_->Write(worker, stream, data); !status.ok()) {
    Note(absl::StrCat("farandole: --output-dir: ", status.message(), "; the job goes on without this file"));
  }
}

void OutputMux::WriteResult(int rank, absl::string_view data) {
  if (results_ == nullptr) return;
  if (const absl::Status status = results_->Append(rank, data); !status.ok()) {
    Note(absl::StrCat("farandole: the result of rank ", rank, " is lost: ", status.message()));
  }
}

void OutputMux::Place(Generation generation, const std::vector<PlacedWorker>& workers) {
  generation_ = generation.value();
  if (instances_ == nullptr) return;
  if (const absl::Status status = instances_->Place(generation, workers); !status.ok()) {
    Note(absl::StrCat("farandole: --output-dir: ", status.message(), "; the job goes on without the index"));
  }
}

void OutputMux::End(const WorkerId& worker, int rank) {
  inside_line_.erase({worker, OutputStream::kStdout});
  inside_line_.erase({worker, OutputStream::kStderr});
  if (files_) files_->End(rank);
  if (instances_ != nullptr) instances_->End(worker);
  if (results_ != nullptr) results_->End(rank);
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
