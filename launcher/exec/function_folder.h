#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "driver/core/actions.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Where horovod.run() (worker/python/farandole/launch.py) leaves a function for the launcher and finds what came of it:
//
//   function      what every worker reads from standard input
//   result.RANK   what that worker wrote as its result; made with the first byte, and gone again if not all of it could
//                 be written
//   verdict       the end of the job, in JSON: {"exit_code", "reason", and "first_failure": {"rank", "host",
//                 "exit_code"} if a worker failed first}; there at once as a whole
//
// The bytes of function and results are the caller's: they are carried and not looked at.
//
// Threads: Append and End belong to one thread; WriteVerdict comes after their last call.
class FunctionFolder {
 public:
  // Far more than a function with its arguments has.
  static constexpr size_t kMaxFunctionBytes = size_t{2} << 30;

  // Opens the folder and reads the function. Errors: of the system; PermissionDenied: others could write there, or the
  // file is another user's; InvalidArgument: it is no regular file, or larger than `max_bytes`. All name the path.
  static absl::StatusOr<std::unique_ptr<FunctionFolder>> Open(const std::string& path,
                                                              size_t max_bytes = kMaxFunctionBytes);

  std::shared_ptr<const std::string> function() const { return function_; }

  // Adds to the result of `rank`. An error is returned once per rank; what comes after it is dropped.
  absl::Status Append(int rank, absl::string_view data);
  // No more comes from `rank`.
  void End(int rank);

  absl::Status WriteVerdict(const Verdict& verdict);

 private:
  struct Result {
    UniqueFd fd;
    bool failed = false;
  };

  FunctionFolder(std::string path, UniqueFd folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  absl::Status ReadFunction(size_t max_bytes);
  absl::StatusOr<UniqueFd> Make(const std::string& name) const;
  absl::Status AppendTo(Result* result, const std::string& name, absl::string_view data);
  std::string PathOf(const std::string& name) const;

  const std::string path_;  // for messages
  const UniqueFd folder_;
  std::shared_ptr<const std::string> function_;
  std::map<int, Result> results_;
};

}  // namespace farandole
