#include "worker/agent/slab_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/status_macros.h"
#include "tools/base/unix_socket.h"
#include "worker/agent/slab_wire.h"

namespace farandole {
namespace {

absl::Status Send(int connection, absl::string_view name, int64_t bytes) {
  SlabRequest request{kSlabMagic, 0, bytes};
  iovec parts[] = {{&request, sizeof request}, {const_cast<char*>(name.data()), name.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (::sendmsg(connection, &message, MSG_NOSIGNAL) < 0) {
    return absl::UnavailableError(ErrnoStatus(errno, "asking the agent").message());
  }
  return absl::OkStatus();
}

absl::Status AwaitReply(int connection, Instant deadline) {
  pollfd waiting{connection, POLLIN, 0};
  int count;
  do {
    count = ::poll(&waiting, 1, PollTimeoutMs(deadline));
  } while (count < 0 && errno == EINTR);
  if (count == 0 && Now() < deadline)
    return AwaitReply(connection, deadline);  // poll's longest wait is over, ours is not
  if (count == 0) return absl::DeadlineExceededError("the agent did not answer");
  return count > 0 ? absl::OkStatus() : ErrnoStatus(errno, "poll");
}

absl::StatusOr<UniqueFd> Receive(int connection) {
  struct {
    SlabReply head;
    char words[kMaxSlabWords];
  } reply;
  iovec part{&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t size = ::recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  if (size <= 0) return absl::UnavailableError("the agent closed the connection without an answer");
  UniqueFd memory;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    memory.reset(fd);
  }
  if (size < static_cast<ssize_t>(sizeof reply.head) || reply.head.magic != kSlabMagic) {
    return absl::InternalError("the agent's answer is none of this release");
  }
  if (reply.head.code != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.head.code),
                        absl::string_view(reply.words, size - sizeof reply.head));
  }
  if (!memory) return absl::InternalError("the agent sent no descriptor (has this process too many open?)");
  return memory;
}

class SlabClient final : public SlabSource {
 public:
  explicit SlabClient(std::string socket) : socket_(std::move(socket)) {}

  absl::StatusOr<UniqueFd> Open(absl::string_view name, int64_t bytes, Instant deadline) override {
    absl::StatusOr<UniqueFd> memory = Ask(name, bytes, deadline);
    if (memory.ok()) return memory;
    return StatusBuilder(memory.status()) << bytes << " bytes of shared memory from this host's agent";
  }

 private:
  absl::StatusOr<UniqueFd> Ask(absl::string_view name, int64_t bytes, Instant deadline) {
    ASSIGN_OR_RETURN(const UniqueFd connection, ConnectAbstract(SOCK_SEQPACKET, socket_, deadline));
    RETURN_IF_ERROR(CheckPeer(connection.get()));
    RETURN_IF_ERROR(Send(connection.get(), name, bytes));
    RETURN_IF_ERROR(AwaitReply(connection.get(), deadline));
    return Receive(connection.get());
  }

  const std::string socket_;
};

}  // namespace

std::unique_ptr<SlabSource> ConnectSlabs(std::string socket) { return std::make_unique<SlabClient>(std::move(socket)); }

}  // namespace farandole
