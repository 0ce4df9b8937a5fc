#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace farandole {

// The error of a system call as a status whose code fits `error` (an errno value) and whose message is
// "<what>: <errno in words>".
absl::Status ErrnoStatus(int error, absl::string_view what);

}  // namespace farandole
