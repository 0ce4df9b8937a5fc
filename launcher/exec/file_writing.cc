#include "launcher/exec/file_writing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {

absl::Status MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, absl::StrCat("make folder ", folder));
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

absl::StatusOr<UniqueFd> OpenForAppending(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | flags, 0666));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("open ", path));
  return fd;
}

absl::Status WriteWhole(const UniqueFd& file, const std::string& path, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(file.get(), data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status GrowingFile::Append(const std::string& path, int flags, absl::string_view data) {
  if (failed_) return absl::OkStatus();
  failed_ = true;  // unless we come to the end
  if (!fd_) {
    ASSIGN_OR_RETURN(fd_, OpenForAppending(path, flags));
  }
  RETURN_IF_ERROR(WriteWhole(fd_, path, data));
  failed_ = false;
  return absl::OkStatus();
}

}  // namespace farandole
