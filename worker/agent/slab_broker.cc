#include "worker/agent/slab_broker.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tools/base/errno_status.h"
#include "tools/base/log.h"
#include "tools/base/status_macros.h"
#include "worker/agent/slab_wire.h"

namespace farandole {
namespace {

// A connection lives for one request; this many at once are more than workers on a host.
constexpr size_t kMaxConnections = 1024;

int64_t HalfOfMemory() { return static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGE_SIZE) / 2; }

absl::StatusOr<UniqueFd> MakeMemory(const std::string& name, int64_t bytes) {
  UniqueFd memory(::memfd_create("farandole-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), bytes) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const absl::Status status = ErrnoStatus(errno, absl::StrCat("shared memory ", name, " of ", bytes, " bytes"));
    return absl::ResourceExhaustedError(status.message());
  }
  return memory;
}

void Reply(int connection, const absl::Status& status, int memory) {
  const std::string words(status.message().substr(0, kMaxSlabWords));
  SlabReply reply{kSlabMagic, static_cast<uint32_t>(status.code())};
  iovec parts[] = {{&reply, sizeof reply}, {const_cast<char*>(words.data()), words.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (status.ok()) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &memory, sizeof memory);
  }
  // One small packet on a new connection has room; who has gone meanwhile misses nothing.
  [[maybe_unused]] const ssize_t n = ::sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlabBroker>> SlabBroker::Start(EventLoop* loop, SlabLimits limits) {
  if (limits.bytes == 0) limits.bytes = HalfOfMemory();
  ASSIGN_OR_RETURN(AbstractListener listener, ListenAbstract(SOCK_SEQPACKET), std::move(_) << "shared memory");
  std::unique_ptr<SlabBroker> broker(new SlabBroker(loop, limits, std::move(listener)));
  loop->Watch(broker->listener_.fd.get(), EPOLLIN, [broker = broker.get()](uint32_t) { broker->Accept(); });
  return broker;
}

SlabBroker::SlabBroker(EventLoop* loop, SlabLimits limits, AbstractListener listener)
    : loop_(loop), limits_(limits), listener_(std::move(listener)) {}

SlabBroker::~SlabBroker() {
  loop_->Unwatch(listener_.fd.get());
  for (const auto& [fd, connection] : connections_) loop_->Unwatch(fd);
}

void SlabBroker::ForgetAll() {
  slabs_.clear();
  bytes_ = 0;
}

void SlabBroker::Accept() {
  UniqueFd connection(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection) return;
  if (const absl::Status peer = CheckPeer(connection.get()); !peer.ok()) {
    LOG(WARNING) << "refused a request for shared memory: " << peer.message();
    return;
  }
  if (connections_.size() >= kMaxConnections) {
    Reply(connection.get(), absl::ResourceExhaustedError("the agent has too many requests for shared memory"), -1);
    return;
  }
  const int fd = connection.get();
  connections_[fd] = std::move(connection);
  loop_->Watch(fd, EPOLLIN, [this, fd](uint32_t) { Serve(fd); });
}

void SlabBroker::Serve(int connection) {
  struct {
    SlabRequest head;
    char name[kMaxSlabName + 1];  // one more, so that a longer name is seen
  } packet;
  const ssize_t size = ::recv(connection, &packet, sizeof packet, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size >= static_cast<ssize_t>(sizeof packet.head) && packet.head.magic == kSlabMagic) {
    const absl::string_view name(packet.name, size - sizeof packet.head);
    const absl::StatusOr<int> memory = Find(name, packet.head.bytes);
    Reply(connection, memory.status(), memory.value_or(-1));
  } else if (size > 0) {
    Reply(connection, absl::InvalidArgumentError("not a request for shared memory of this release"), -1);
  }
  loop_->Unwatch(connection);
  connections_.erase(connection);
}

absl::StatusOr<int> SlabBroker::Find(absl::string_view name, int64_t bytes) {
  if (name.empty() || name.size() > kMaxSlabName) {
    return absl::InvalidArgumentError(absl::StrCat("the name of shared memory has 1 to ", kMaxSlabName, " bytes"));
  }
  const std::string key(name);
  const std::string shown = absl::StrCat("shared memory \"", absl::CEscape(name), "\"");
  if (const auto it = slabs_.find(key); it != slabs_.end()) {
    if (it->second.bytes == bytes) return it->second.memory.get();
    return absl::InvalidArgumentError(
        absl::StrCat(shown, " has ", it->second.bytes, " bytes, and another worker asks for ", bytes));
  }
  if (bytes <= 0) return absl::InvalidArgumentError(absl::StrCat(shown, " cannot have ", bytes, " bytes"));
  if (slabs() >= limits_.slabs) {
    return absl::ResourceExhaustedError(absl::StrCat(shown, ": this host has ", limits_.slabs, " pieces already"));
  }
  if (bytes > limits_.bytes - bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(shown, " of ", bytes, " bytes: of the ", limits_.bytes,
                                                     " that this host gives to a job, ", bytes_, " are taken"));
  }
  ASSIGN_OR_RETURN(UniqueFd memory, MakeMemory(shown, bytes));
  const int fd = memory.get();
  slabs_[key] = Slab{std::move(memory), bytes};
  bytes_ += bytes;
  return fd;
}

}  // namespace farandole
