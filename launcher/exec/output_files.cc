#include "launcher/exec/output_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr OutputStream kStreams[] = {OutputStream::kStdout, OutputStream::kStderr};

absl::Status MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, absl::StrCat("make folder ", folder));
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

absl::StatusOr<UniqueFd> Open(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | flags, 0666));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("open ", path));
  return fd;
}

}  // namespace

std::string OutputFiles::Folder(int rank) const {
  return absl::StrCat(directory_, "/rank.", absl::StrFormat("%0*d", width_, rank));
}

std::string OutputFiles::Path(int rank, OutputStream stream) const {
  return absl::StrCat(Folder(rank), stream == OutputStream::kStdout ? "/stdout" : "/stderr");
}

absl::StatusOr<OutputFiles> OutputFiles::Create(const std::string& directory, int np) {
  OutputFiles files(directory, static_cast<int>(absl::StrCat(np - 1).size()));
  for (int rank = 0; rank < np; ++rank) {
    RETURN_IF_ERROR(MakeFolders(files.Folder(rank)));
    for (const OutputStream stream : kStreams) RETURN_IF_ERROR(Open(files.Path(rank, stream), O_TRUNC).status());
  }
  return files;
}

absl::Status OutputFiles::Write(int rank, OutputStream stream, absl::string_view text) {
  File& file = files_[{rank, stream}];
  if (file.failed) return absl::OkStatus();
  const std::string path = Path(rank, stream);
  file.failed = true;  // unless we come to the end
  if (!file.fd) {
    ASSIGN_OR_RETURN(file.fd, Open(path, 0));
  }
  while (!text.empty()) {
    const ssize_t written = ::write(file.fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
    text.remove_prefix(static_cast<size_t>(written));
  }
  file.failed = false;
  return absl::OkStatus();
}

void OutputFiles::End(int rank) {
  for (const OutputStream stream : kStreams) files_.erase({rank, stream});
}

}  // namespace farandole
