#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "driver/core/ids.h"
#include "launcher/exec/file_writing.h"
#include "tools/base/ids.h"
#include "tools/base/mutex.h"

namespace farandole {

struct PlacedWorker {
  WorkerId worker;
  Placement placement;
};

// The files of --output-dir DIR: what each start of a worker wrote, byte for byte, in files of its own. Nothing is ever
// emptied or written over, neither by a restarted worker nor by another job: each job has a folder.
//
//   DIR/JOB/index.jsonl                      who had which rank when: a JSON object per line
//   DIR/JOB/HOST.SLOT.INCARNATION.stdout     made with the first byte; likewise .stderr
//   DIR/latest -> JOB
//
// Thread-safe.
class InstanceFiles {
 public:
  // Makes the folder, parents too. Errors: of the system, with the path; AlreadyExists: there is such a job.
  static absl::StatusOr<std::unique_ptr<InstanceFiles>> Create(const std::string& directory, const std::string& job);

  // The name of a file inside the job's folder.
  static std::string NameOf(const WorkerId& worker, OutputStream stream);

  // Appends `data`. An error is returned once per file; what comes after it is dropped.
  absl::Status Write(const WorkerId& worker, OutputStream stream, absl::string_view data) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const WorkerId& worker) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds a line to the index for each worker: `generation` zero is its start. An error is returned once.
  absl::Status Place(Generation generation, const std::vector<PlacedWorker>& workers) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit InstanceFiles(std::string folder) : folder_(std::move(folder)) {}
  std::string PathOf(const std::string& name) const;

  const std::string folder_;
  Mutex mutex_;
  GrowingFile index_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<WorkerId, OutputStream>, GrowingFile> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
