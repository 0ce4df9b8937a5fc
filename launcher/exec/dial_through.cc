#include "launcher/exec/dial_through.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "launcher/ssh/await.h"
#include "tools/base/errno_status.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// The driver keeps the deadline, and has more to say than we.
constexpr absl::Duration kSlack = absl::Seconds(1);

// Also of addresses with a scope, which inet_pton takes for none.
bool IsTheSameEverywhere(const std::string& address) {
  in_addr v4;
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    const uint32_t bits = ntohl(v4.s_addr);
    return bits >> 24 != 127 && bits >> 16 != 0xa9fe;
  }
  in6_addr v6;
  return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_LINKLOCAL(&v6);
}

// Shared by who waits and who answers; whoever is last lets go of it, and of a connection that nobody waits for.
class Answer {
 public:
  Answer() : event_(::eventfd(0, EFD_CLOEXEC)) {}

  int event() const { return event_.get(); }

  void Give(absl::StatusOr<UniqueFd> result) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      result_ = std::move(result);
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
  }

  absl::StatusOr<UniqueFd> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return *std::move(result_);
  }

 private:
  const UniqueFd event_;
  Mutex mutex_;
  absl::optional<absl::StatusOr<UniqueFd>> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<UniqueFd> DialThrough(const AgentStart& start, const std::string& via, const std::string& address,
                                     int port, Instant deadline, const Cancellation& cancellation) {
  if (!IsTheSameEverywhere(address)) {
    return absl::FailedPreconditionError(absl::StrCat(address, " is another machine on host ", via));
  }
  const auto answer = std::make_shared<Answer>();
  if (answer->event() < 0) return ErrnoStatus(errno, "eventfd");
  start.open_relay(via, address, port, deadline,
                   [answer](absl::StatusOr<UniqueFd> result) { answer->Give(std::move(result)); });
  RETURN_IF_ERROR(AwaitFd(answer->event(), POLLIN, deadline + kSlack, cancellation))
      << "to " << address << " by way of host " << via;
  return answer->Take();
}

}  // namespace farandole
