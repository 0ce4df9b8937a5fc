#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "driver/runtime/output_sink.h"
#include "launcher/exec/file_writing.h"

namespace farandole {

// The files of --output-filename DIR: DIR/rank.R/stdout and DIR/rank.R/stderr for each rank, R with leading zeros so
// that all names have one length. Thread-compatible.
class OutputFiles {
 public:
  // Makes the folders, parents too, and each file, empty: what cannot be written is known before anything starts. Files
  // of an earlier job are emptied. Errors: of the system, with the path.
  static absl::StatusOr<OutputFiles> Create(const std::string& directory, int np);

  // Appends `text`. A file is open from its first text to End, so that no more are than workers live. An error is
  // returned once per file; what comes after it is dropped.
  absl::Status Write(int rank, OutputStream stream, absl::string_view text);
  void End(int rank);

 private:
  OutputFiles(std::string directory, int width) : directory_(std::move(directory)), width_(width) {}
  std::string Folder(int rank) const;
  std::string Path(int rank, OutputStream stream) const;

  std::string directory_;
  int width_ = 1;
  std::map<std::pair<int, OutputStream>, GrowingFile> files_;
};

}  // namespace farandole
