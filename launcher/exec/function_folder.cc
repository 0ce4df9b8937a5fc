#include "launcher/exec/function_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "launcher/exec/file_writing.h"
#include "nlohmann/json.hpp"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr char kFunction[] = "function", kVerdict[] = "verdict", kNewVerdict[] = "verdict.new";

std::string ResultName(int rank) { return absl::StrCat("result.", rank); }

// What another user can write, this one does not read as a function.
absl::Status CheckFolder(int fd, const std::string& path) {
  struct stat found;
  if (::fstat(fd, &found) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", path));
  if (found.st_uid == ::geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, ": others than this user may write there"));
}

absl::Status CheckFile(int fd, const std::string& path, size_t max_bytes, size_t* size) {
  struct stat found;
  if (::fstat(fd, &found) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", path));
  if (!S_ISREG(found.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  if (found.st_uid != ::geteuid()) return absl::PermissionDeniedError(absl::StrCat(path, " is another user's"));
  *size = static_cast<size_t>(found.st_size);
  if (*size <= max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has ", *size, " bytes, more than ", max_bytes, ": give the data a file of its own"));
}

std::string VerdictJson(const Verdict& verdict) {
  nlohmann::ordered_json json;
  json["exit_code"] = verdict.exit_code;
  json["reason"] = verdict.reason.empty() && verdict.exit_code != 0 ? "the job failed" : verdict.reason;
  if (verdict.has_first_failure) {
    const WorkerEnd& first = verdict.first_failure;
    json["first_failure"] = {
        {"rank", first.rank}, {"host", first.worker.slot.host}, {"exit_code", first.status.shell_code()}};
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<FunctionFolder>> FunctionFolder::Open(const std::string& path, size_t max_bytes) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return ErrnoStatus(errno, absl::StrCat("open folder ", path));
  RETURN_IF_ERROR(CheckFolder(folder.get(), path));
  std::unique_ptr<FunctionFolder> opened(new FunctionFolder(path, std::move(folder)));
  RETURN_IF_ERROR(opened->ReadFunction(max_bytes));
  return opened;
}

std::string FunctionFolder::PathOf(const std::string& name) const { return absl::StrCat(path_, "/", name); }

absl::Status FunctionFolder::ReadFunction(size_t max_bytes) {
  const std::string path = PathOf(kFunction);
  // Not to wait for whoever opens the other end of a pipe.
  const UniqueFd file(::openat(folder_.get(), kFunction, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return ErrnoStatus(errno, absl::StrCat("open ", path));
  size_t size = 0;
  RETURN_IF_ERROR(CheckFile(file.get(), path, max_bytes, &size));
  auto text = std::make_shared<std::string>(size, '\0');
  for (size_t done = 0; done < size;) {
    const ssize_t read = ::read(file.get(), text->data() + done, size - done);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
    if (read == 0) return absl::DataLossError(absl::StrCat(path, " became shorter while it was read"));
    done += static_cast<size_t>(read);
  }
  function_ = std::move(text);
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> FunctionFolder::Make(const std::string& name) const {
  UniqueFd fd(::openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("make ", PathOf(name)));
  return fd;
}

absl::Status FunctionFolder::Append(int rank, absl::string_view data) {
  Result& result = results_[rank];
  if (result.failed) return absl::OkStatus();
  const std::string name = ResultName(rank);
  absl::Status status = AppendTo(&result, name, data);
  if (status.ok()) return status;
  // Half a result is none.
  if (result.fd) ::unlinkat(folder_.get(), name.c_str(), 0);
  result.fd.reset();
  result.failed = true;
  return status;
}

absl::Status FunctionFolder::AppendTo(Result* result, const std::string& name, absl::string_view data) {
  if (!result->fd) {
    ASSIGN_OR_RETURN(result->fd, Make(name));
  }
  return WriteWhole(result->fd, PathOf(name), data);
}

void FunctionFolder::End(int rank) {
  const auto it = results_.find(rank);
  if (it != results_.end()) it->second.fd.reset();
}

absl::Status FunctionFolder::WriteVerdict(const Verdict& verdict) {
  ASSIGN_OR_RETURN(const UniqueFd file, Make(kNewVerdict));
  RETURN_IF_ERROR(WriteWhole(file, PathOf(kNewVerdict), VerdictJson(verdict)));
  if (::renameat(folder_.get(), kNewVerdict, folder_.get(), kVerdict) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("rename to ", PathOf(kVerdict)));
}

}  // namespace farandole
