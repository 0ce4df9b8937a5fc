#include "launcher/exec/output_files.h"

#include <fcntl.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/exec/file_writing.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr OutputStream kStreams[] = {OutputStream::kStdout, OutputStream::kStderr};

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
    for (const OutputStream stream : kStreams)
      RETURN_IF_ERROR(OpenForAppending(files.Path(rank, stream), O_TRUNC).status());
  }
  return files;
}

absl::Status OutputFiles::Write(int rank, OutputStream stream, absl::string_view text) {
  File& file = files_[{rank, stream}];
  if (file.failed) return absl::OkStatus();
  const std::string path = Path(rank, stream);
  file.failed = true;  // unless we come to the end
  if (!file.fd) {
    ASSIGN_OR_RETURN(file.fd, OpenForAppending(path, 0));
  }
  RETURN_IF_ERROR(WriteWhole(file.fd, path, text));
  file.failed = false;
  return absl::OkStatus();
}

void OutputFiles::End(int rank) {
  for (const OutputStream stream : kStreams) files_.erase({rank, stream});
}

}  // namespace farandole
