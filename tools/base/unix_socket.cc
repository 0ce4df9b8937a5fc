#include "tools/base/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/random_bytes.h"

namespace farandole {
namespace {

// How many connections may wait for accept(2): all workers of a large host at once.
constexpr int kBacklog = 1024;

// Fills `address` and returns its length.
socklen_t SetAddress(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

absl::Status SetSendTimeout(int fd, Instant deadline) {
  timeval limit{};  // zero: none
  if (!deadline.is_infinite()) {
    const int ms = std::max(1, PollTimeoutMs(deadline));
    limit.tv_sec = ms / 1000;
    limit.tv_usec = ms % 1000 * 1000;
  }
  if (::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) return ErrnoStatus(errno, "SO_SNDTIMEO");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AbstractListener> ListenAbstract(int type) {
  AbstractListener listener;
  listener.name = absl::StrCat("farandole-", absl::BytesToHexString(RandomBytes(16)));
  listener.fd.reset(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.fd) return ErrnoStatus(errno, "a unix socket");
  sockaddr_un address;
  const socklen_t length = SetAddress(listener.name, &address);
  if (::bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener.fd.get(), kBacklog) != 0) {
    return ErrnoStatus(errno, absl::StrCat("listening on the abstract unix socket ", listener.name));
  }
  return listener;
}

absl::StatusOr<UniqueFd> ConnectAbstract(int type, const std::string& name, Instant deadline) {
  if (name.empty() || name.size() > sizeof(sockaddr_un::sun_path) - 1) {
    return absl::InvalidArgumentError(absl::StrCat("the name of an abstract unix socket has 1 to ",
                                                   sizeof(sockaddr_un::sun_path) - 1, " bytes; \"", absl::CEscape(name),
                                                   "\" has ", name.size()));
  }
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus(errno, "a unix socket");
  if (absl::Status status = SetSendTimeout(fd.get(), deadline); !status.ok()) return status;
  sockaddr_un address;
  const socklen_t length = SetAddress(name, &address);
  int rc;
  do {
    rc = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) {
    const absl::Status status = ErrnoStatus(errno, absl::StrCat("connecting to the abstract unix socket ", name));
    return absl::UnavailableError(status.message());
  }
  return fd;
}

absl::StatusOr<uid_t> PeerUser(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return ErrnoStatus(errno, "SO_PEERCRED");
  return peer.uid;
}

bool IsThisUserOrRoot(uid_t peer) { return peer == ::geteuid() || peer == 0; }

absl::Status CheckPeer(int fd) {
  const absl::StatusOr<uid_t> peer = PeerUser(fd);
  if (!peer.ok()) return peer.status();
  if (IsThisUserOrRoot(*peer)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the other end belongs to user ", *peer, ", and this process to user ", ::geteuid()));
}

}  // namespace farandole
