#include "launcher/exec/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/errno_status.h"
#include "tools/base/unique_fd.h"

namespace farandole {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  constexpr size_t kLargest = 16 << 20;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return ErrnoStatus(errno, absl::StrCat("open ", path));
  std::string text;
  char buffer[65536];
  while (text.size() <= kLargest) {
    const ssize_t size = ::read(file.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
    if (size == 0) return text;
    text.append(buffer, static_cast<size_t>(size));
  }
  return absl::OutOfRangeError(absl::StrCat("read ", path, ": larger than 16 MiB"));
}

}  // namespace farandole
