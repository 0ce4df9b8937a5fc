#include "collectives/transport/tcp/dial.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collectives/transport/tcp/socket.h"
#include "tools/base/check.h"
#include "tools/base/clock.h"
#include "tools/base/errno_status.h"

namespace farandole {
namespace {

// What the end of a connection means once the claim was made.
constexpr char kRefusedClaim[] =
    " when told whom this rank looks for: another worker listens there, or a process without this job's key";

}  // namespace

Dial::Dial(const std::vector<std::string>& endpoints, absl::string_view key, const LinkClaim& claim, Options options)
    : key_(key), claim_(claim), options_(options) {
  CHECK(!endpoints.empty()) << "nowhere to connect to";
  for (const std::string& endpoint : endpoints) attempts_.push_back({endpoint, absl::nullopt, ""});
}

absl::StatusOr<Dial> Dial::Begin(const std::vector<std::string>& endpoints, absl::string_view key,
                                 const LinkClaim& claim, Options options) {
  Dial dial(endpoints, key, claim, options);
  dial.poll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!dial.poll_) return ErrnoStatus(errno, "epoll_create");
  dial.timer_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!dial.timer_) return ErrnoStatus(errno, "timerfd_create");
  epoll_event event = {};
  event.events = EPOLLIN;
  if (::epoll_ctl(dial.poll_.get(), EPOLL_CTL_ADD, dial.timer_.get(), &event) != 0) {
    return ErrnoStatus(errno, "epoll_ctl");
  }
  const Instant now = Now();
  dial.next_start_ = now;
  dial.ArmTimer(now);
  return dial;
}

absl::StatusOr<bool> Dial::Advance() {
  uint64_t expirations;
  [[maybe_unused]] const ssize_t read = ::read(timer_.get(), &expirations, sizeof expirations);
  const Instant now = Now();
  for (size_t at = 0; at < attempts_.size() && !proven_.has_value(); ++at) {
    if (attempts_[at].io.has_value()) AdvanceOne(at);
  }
  if (proven_.has_value()) return true;
  ExpireClaim(now);
  StartDue(now);
  const bool all_failed =
      std::all_of(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) { return !attempt.failure.empty(); });
  if (all_failed) return absl::UnavailableError(Describe());
  ArmTimer(now);
  return false;
}

UniqueFd Dial::TakeFd() {
  Watch(*proven_, EPOLL_CTL_DEL, 0);
  return attempts_[*proven_].io->TakeFd();
}

std::string Dial::Describe() const {
  return absl::StrJoin(attempts_, "; ", [this](std::string* out, const Attempt& attempt) {
    const bool told = claimed_.has_value() && &attempt == &attempts_[*claimed_];
    const absl::string_view so_far = told                     ? "no proof of the job's key yet"
                                     : attempt.io.has_value() ? "no answer yet"
                                                              : "not tried yet";
    absl::StrAppend(out, "to ", attempt.endpoint, ": ", attempt.failure.empty() ? so_far : attempt.failure);
  });
}

void Dial::Start(size_t at) {
  absl::StatusOr<UniqueFd> fd = BeginConnect(attempts_[at].endpoint);
  if (!fd.ok()) return Fail(at, fd.status().message());
  attempts_[at].io.emplace(*std::move(fd), Handshake::Client(key_, claim_));
  if (!Watch(at, EPOLL_CTL_ADD, EPOLLOUT)) Fail(at, ErrnoStatus(errno, "epoll_ctl").message());
}

void Dial::AdvanceOne(size_t at) {
  HandshakeIo& io = *attempts_[at].io;
  const absl::StatusOr<short> events = io.Advance();
  if (!events.ok()) {
    const bool refused_claim = io.claimed() && absl::IsUnavailable(events.status());
    return Fail(at, absl::StrCat(events.status().message(), refused_claim ? kRefusedClaim : ""));
  }
  if (io.claimed() && !claimed_.has_value()) Claim(at);
  if (*events == 0) {
    proven_ = at;
  } else {
    Watch(at, EPOLL_CTL_MOD, *events);
  }
}

// The others have only said hello.
void Dial::Claim(size_t at) {
  claimed_ = at;
  claim_expires_ = Now() + options_.proof_timeout;
  for (size_t other = 0; other < attempts_.size(); ++other) {
    if (other != at) Drop(other);
  }
}

void Dial::Fail(size_t at, absl::string_view why) {
  attempts_[at].failure = std::string(why);
  Drop(at);
  if (claimed_ == at) claimed_.reset();
  next_start_ = Instant();
}

// Shut down as well: a process that forked since may hold a copy of the socket, and the listener would wait for it.
void Dial::Drop(size_t at) {
  if (!attempts_[at].io.has_value()) return;
  Watch(at, EPOLL_CTL_DEL, 0);
  ::shutdown(attempts_[at].io->fd(), SHUT_RDWR);
  attempts_[at].io.reset();
}

bool Dial::Watch(size_t at, int operation, short events) {
  epoll_event event = {};
  event.events = static_cast<uint16_t>(events);  // poll's bits, which epoll shares
  return ::epoll_ctl(poll_.get(), operation, attempts_[at].io->fd(), &event) == 0;
}

void Dial::ExpireClaim(Instant now) {
  if (!claimed_.has_value() || now < claim_expires_ || NextIdle() == attempts_.size()) return;
  Fail(*claimed_, absl::StrCat("it took the claim and gave no proof of the job's key for ",
                               absl::FormatDuration(options_.proof_timeout)));
}

void Dial::StartDue(Instant now) {
  while (!claimed_.has_value() && now >= next_start_) {
    const size_t next = NextIdle();
    if (next == attempts_.size()) return;
    next_start_ = now + options_.step;
    Start(next);
  }
}

// Zero disarms a timer, so what is due now is due in a nanosecond.
void Dial::ArmTimer(Instant now) {
  itimerspec when = {};
  if (NextIdle() < attempts_.size()) {
    const Instant due = claimed_.has_value() ? claim_expires_ : next_start_;
    const int64_t left = std::max<int64_t>(1, absl::ToInt64Nanoseconds(due - now));
    when.it_value.tv_sec = left / 1'000'000'000;
    when.it_value.tv_nsec = left % 1'000'000'000;
  }
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

size_t Dial::NextIdle() const {
  const auto idle = std::find_if(attempts_.begin(), attempts_.end(), [](const Attempt& attempt) {
    return !attempt.io.has_value() && attempt.failure.empty();
  });
  return static_cast<size_t>(idle - attempts_.begin());
}

}  // namespace farandole
