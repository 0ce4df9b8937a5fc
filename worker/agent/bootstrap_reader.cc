#include "worker/agent/bootstrap_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/convert/agent_convert.h"
#include "proto/v1/bootstrap.pb.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr uint32_t kMaxBytes = 64 << 10;

absl::Status AwaitInput(int fd, Instant deadline) {
  pollfd waiting{fd, POLLIN, 0};
  while (true) {
    const int count = ::poll(&waiting, 1, PollTimeoutMs(deadline));
    if (count > 0) return absl::OkStatus();
    if (count < 0 && errno != EINTR) return absl::UnavailableError(ErrnoStatus(errno, "poll").message());
    if (count == 0 && Now() >= deadline) return absl::DeadlineExceededError("it was not written in time");
  }
}

absl::StatusOr<std::string> ReadExactly(int fd, size_t size, Instant deadline) {
  std::string bytes(size, '\0');
  for (size_t done = 0; done < size;) {
    RETURN_IF_ERROR(AwaitInput(fd, deadline));
    const ssize_t n = ::read(fd, bytes.data() + done, size - done);
    if (n == 0) return absl::UnavailableError(absl::StrCat("it ended after ", done, " of ", size, " bytes"));
    if (n < 0 && errno != EINTR && errno != EAGAIN) {
      return absl::UnavailableError(ErrnoStatus(errno, "read").message());
    }
    if (n > 0) done += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<Bootstrap> ReadBootstrap(int fd, Instant deadline) {
  ASSIGN_OR_RETURN(const std::string head, ReadExactly(fd, 4, deadline), std::move(_) << "the length");
  uint32_t size = 0;
  for (const char byte : head) size = size << 8 | static_cast<unsigned char>(byte);
  if (size > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat("it is ", size, " bytes long; at most ", kMaxBytes, " are read"));
  }
  ASSIGN_OR_RETURN(const std::string body, ReadExactly(fd, size, deadline), std::move(_) << "the message");
  v1::AgentBootstrap proto;
  if (!proto.ParseFromString(body)) return absl::InvalidArgumentError("it is no AgentBootstrap message");
  return FromProto(proto);
}

}  // namespace farandole
