#include "launcher/exec/output_files.h"

#include <fcntl.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
  return files_[{rank, stream}].Append(Path(rank, stream), 0, text);
}

void OutputFiles::End(int rank) {
  for (const OutputStream stream : kStreams) files_.erase({rank, stream});
}

}  // namespace farandole
