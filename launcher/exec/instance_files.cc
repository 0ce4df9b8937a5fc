#include "launcher/exec/instance_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr OutputStream kStreams[] = {OutputStream::kStdout, OutputStream::kStderr};

// Host names are ours to write into a path: only "[v6]" and the like have anything to replace.
std::string InPath(std::string host) {
  for (char& c : host) {
    if (c == '/' || c == ':' || c == '%') c = '_';
  }
  return host;
}

std::string IndexLine(Generation generation, const PlacedWorker& one) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::LocalTimeZone());
  line["generation"] = generation.value();
  line["rank"] = one.placement.rank;
  line["host"] = one.worker.slot.host;
  line["local_rank"] = one.placement.local_rank;
  line["stdout"] = InstanceFiles::NameOf(one.worker, OutputStream::kStdout);
  line["stderr"] = InstanceFiles::NameOf(one.worker, OutputStream::kStderr);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// A convenience: that it cannot be made is no reason to refuse a job.
void PointLatestTo(const std::string& directory, const std::string& job) {
  const std::string made = absl::StrCat(directory, "/.latest.", job);
  if (::symlink(job.c_str(), made.c_str()) != 0) return;
  if (::rename(made.c_str(), absl::StrCat(directory, "/latest").c_str()) != 0) ::unlink(made.c_str());
}

}  // namespace

std::string InstanceFiles::NameOf(const WorkerId& worker, OutputStream stream) {
  return absl::StrFormat("%s.%d.%016x.%s", InPath(worker.slot.host), worker.slot.slot, worker.incarnation.value(),
                         stream == OutputStream::kStdout ? "stdout" : "stderr");
}

absl::StatusOr<std::unique_ptr<InstanceFiles>> InstanceFiles::Create(const std::string& directory,
                                                                     const std::string& job) {
  RETURN_IF_ERROR(MakeFolders(directory));
  const std::string folder = absl::StrCat(directory, "/", job);
  if (::mkdir(folder.c_str(), 0777) != 0) return ErrnoStatus(errno, absl::StrCat("make folder ", folder));
  std::unique_ptr<InstanceFiles> files(new InstanceFiles(folder));
  RETURN_IF_ERROR(files->Place(Generation(), {}));  // that there can be an index is known before anything starts
  PointLatestTo(directory, job);
  return files;
}

std::string InstanceFiles::PathOf(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

absl::Status InstanceFiles::Write(const WorkerId& worker, OutputStream stream, absl::string_view data) {
  MutexLock lock(&mutex_);
  return files_[{worker, stream}].Append(PathOf(NameOf(worker, stream)), O_EXCL, data);
}

void InstanceFiles::End(const WorkerId& worker) {
  MutexLock lock(&mutex_);
  for (const OutputStream stream : kStreams) files_.erase({worker, stream});
}

absl::Status InstanceFiles::Place(Generation generation, const std::vector<PlacedWorker>& workers) {
  std::string lines;
  for (const PlacedWorker& one : workers) lines += IndexLine(generation, one);
  MutexLock lock(&mutex_);
  return index_.Append(PathOf("index.jsonl"), O_EXCL, lines);
}

}  // namespace farandole
