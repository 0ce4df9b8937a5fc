#include "launcher/ssh/dial.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "launcher/ssh/await.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr absl::Duration kHeadStart = absl::Milliseconds(300);

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text;
};

std::string Numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = "?";
  ::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

// Shared by who waits for the answer and the thread that asks; whoever is last lets go of it.
class Lookup {
 public:
  Lookup(std::string host, int port)
      : host_(std::move(host)), port_(std::to_string(port)), done_(::eventfd(0, EFD_CLOEXEC)) {}

  void Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
    addrinfo* found = nullptr;
    int error = ::getaddrinfo(host_.c_str(), port_.c_str(), &hints, &found);
    if (error == EAI_NONAME || error == EAI_BADFLAGS) {
      // A machine with loopback only has no configured family.
      hints.ai_flags = AI_NUMERICSERV;
      error = ::getaddrinfo(host_.c_str(), port_.c_str(), &hints, &found);
    }
    const int system_error = errno;
    {
      MutexLock lock(&mutex_);
      if (error != 0) {
        const char* const words = error == EAI_SYSTEM ? std::strerror(system_error) : ::gai_strerror(error);
        result_ = absl::UnavailableError(absl::StrCat("the name ", host_, " cannot be looked up: ", words));
      } else {
        result_ = Copied(found);
      }
    }
    if (error == 0) ::freeaddrinfo(found);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(done_.get(), &one, sizeof one);
  }

  int done() const { return done_.get(); }

  absl::StatusOr<std::vector<Address>> result() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return result_;
  }

 private:
  static std::vector<Address> Copied(const addrinfo* found) {
    std::vector<Address> addresses;
    for (; found != nullptr && addresses.size() < 16; found = found->ai_next) {
      Address address;
      std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
      address.size = found->ai_addrlen;
      address.text = Numeric(found->ai_addr, found->ai_addrlen);
      addresses.push_back(std::move(address));
    }
    return addresses;
  }

  const std::string host_, port_;
  const UniqueFd done_;
  Mutex mutex_;
  absl::StatusOr<std::vector<Address>> result_ ABSL_GUARDED_BY(mutex_) = absl::UnknownError("not looked up");
};

absl::StatusOr<std::vector<Address>> Resolve(const std::string& host, int port, Instant deadline,
                                             const Cancellation& cancellation) {
  const auto lookup = std::make_shared<Lookup>(host, port);
  std::thread thread([lookup] { lookup->Run(); });
  const absl::Status waited = AwaitFd(lookup->done(), POLLIN, deadline, cancellation);
  if (waited.ok()) {
    thread.join();
    return lookup->result();
  }
  thread.detach();
  RETURN_IF_ERROR(waited) << "looking up the name " << host;
  return lookup->result();
}

struct Attempt {
  UniqueFd fd;
  std::string address;
};

// The addresses one after the other, overlapping.
class Race {
 public:
  explicit Race(std::vector<Address> addresses) : addresses_(std::move(addresses)) {}

  absl::StatusOr<UniqueFd> Run(Instant deadline, const Cancellation& cancellation) {
    while (true) {
      if (running_.empty() || Now() >= next_start_) StartNext();
      if (running_.empty() && next_ == addresses_.size()) return absl::UnavailableError(absl::StrJoin(reasons_, "; "));
      if (running_.empty()) continue;
      std::vector<pollfd> ready;
      for (const Attempt& attempt : running_) ready.push_back({attempt.fd.get(), POLLOUT, 0});
      const bool more = next_ < addresses_.size();
      const Instant until = more ? std::min(deadline, next_start_) : deadline;
      const absl::Status waited = AwaitAny(absl::MakeSpan(ready), until, cancellation);
      if (absl::IsDeadlineExceeded(waited) && more && Now() < deadline) continue;
      if (absl::IsDeadlineExceeded(waited)) return TimedOut();
      RETURN_IF_ERROR(waited);
      UniqueFd connected = TakeConnected(ready);
      if (connected) return connected;
    }
  }

 private:
  void StartNext() {
    if (next_ == addresses_.size()) return;
    const Address& address = addresses_[next_++];
    next_start_ = Now() + kHeadStart;
    UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd && (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0 ||
               errno == EINPROGRESS)) {
      running_.push_back({std::move(fd), address.text});
    } else {
      Failed(address.text, errno);
    }
  }

  // Removes what has failed; the result is the first that is connected, if any.
  UniqueFd TakeConnected(const std::vector<pollfd>& ready) {
    for (size_t i = ready.size(); i-- > 0;) {
      if (ready[i].revents == 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(running_[i].fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return std::move(running_[i].fd);
      Failed(running_[i].address, error);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return UniqueFd();
  }

  void Failed(const std::string& address, int error) {
    reasons_.push_back(std::string(ErrnoStatus(error, address).message()));
    next_start_ = Now();
  }

  absl::Status TimedOut() {
    for (const Attempt& attempt : running_) reasons_.push_back(absl::StrCat(attempt.address, ": no answer in time"));
    return absl::DeadlineExceededError(absl::StrJoin(reasons_, "; "));
  }

  const std::vector<Address> addresses_;
  size_t next_ = 0;
  Instant next_start_;
  std::vector<Attempt> running_;
  std::vector<std::string> reasons_;
};

void KeepAlive(int fd) {
  const int on = 1, idle_s = 30, interval_s = 10, probes = 3;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

absl::StatusOr<UniqueFd> Dial(const std::string& host, int port, Instant deadline, const Cancellation& cancellation,
                              const std::function<void()>& on_resolved) {
  ASSIGN_OR_RETURN(std::vector<Address> addresses, Resolve(host, port, deadline, cancellation));
  on_resolved();
  ASSIGN_OR_RETURN(UniqueFd fd, Race(std::move(addresses)).Run(deadline, cancellation));
  KeepAlive(fd.get());
  return fd;
}

absl::StatusOr<std::vector<std::string>> LookUp(const std::string& host, Instant deadline,
                                                const Cancellation& cancellation) {
  ASSIGN_OR_RETURN(const std::vector<Address> addresses, Resolve(host, 0, deadline, cancellation));
  std::vector<std::string> texts;
  for (const Address& address : addresses) texts.push_back(address.text);
  return texts;
}

}  // namespace farandole
