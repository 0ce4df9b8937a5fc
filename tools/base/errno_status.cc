#include "tools/base/errno_status.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace farandole {

absl::Status ErrnoStatus(int error, absl::string_view what) {
  char buffer[128];
  const char* words = ::strerror_r(error, buffer, sizeof buffer);
  return absl::Status(absl::ErrnoToStatusCode(error), absl::StrCat(what, ": ", words));
}

}  // namespace farandole
