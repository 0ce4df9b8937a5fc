#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// What the launcher needs to write files for people. Errors: of the system, with the path.

// Makes a folder with its parents; one that is there already is fine.
absl::Status MakeFolders(const std::string& path);

// Opens a file for appending, made if it is not there; `flags` are added (O_TRUNC, O_EXCL).
absl::StatusOr<UniqueFd> OpenForAppending(const std::string& path, int flags);

// `path` is for the message.
absl::Status WriteWhole(const UniqueFd& file, const std::string& path, absl::string_view data);

// A file that grows by what somebody writes. It is opened with the first bytes, and given up at the first error: that
// one is returned, and all that comes after it is dropped. Thread-compatible.
class GrowingFile {
 public:
  // `path` and `flags` (as of OpenForAppending) are the same each time.
  absl::Status Append(const std::string& path, int flags, absl::string_view data);

 private:
  UniqueFd fd_;
  bool failed_ = false;
};

}  // namespace farandole
