#include "collectives/transport/tcp/tcp_listener.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/transport/tcp/socket.h"
#include "tools/base/check.h"
#include "tools/base/clock.h"
#include "tools/base/log.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// How long not to accept after the system refused to: what is missing (descriptors) does not come back at once.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

}  // namespace

TcpInbox::~TcpInbox() { listener_->Unregister(this); }

absl::optional<TcpInbox::Arrival> TcpInbox::Take() {
  MutexLock lock(&mutex_);
  if (arrivals_.empty()) {
    wake_.Clear();
    return absl::nullopt;
  }
  Arrival arrival = std::move(arrivals_.front());
  arrivals_.pop_front();
  return arrival;
}

void TcpInbox::Put(Arrival arrival) {
  MutexLock lock(&mutex_);
  arrivals_.push_back(std::move(arrival));
  wake_.Set();
}

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Create(Options options) {
  ASSIGN_OR_RETURN(std::vector<ListenSocket> sockets, ListenOnAll(options.addresses, options.ports),
                   std::move(_) << "data links of this worker");
  return std::unique_ptr<TcpListener>(new TcpListener(std::move(options), std::move(sockets)));
}

TcpListener::TcpListener(Options options, std::vector<ListenSocket> sockets) : options_(std::move(options)) {
  for (ListenSocket& socket : sockets) {
    fds_.push_back(std::move(socket.fd));
    absl::StrAppend(&endpoint_, endpoint_.empty() ? "" : ",", socket.endpoint);
    addresses_.push_back(std::move(socket.address));
  }
}

void TcpListener::Start(std::string key) {
  CHECK(!key.empty() && key_.empty()) << "a listener is started once, with the job's key";
  key_ = std::move(key);
  thread_ = std::thread([this] { Run(); });
}

TcpListener::~TcpListener() {
  stop_.Set();
  if (thread_.joinable()) thread_.join();
  MutexLock lock(&mutex_);
  CHECK(inboxes_.empty()) << "a listener ends before its groups";
}

std::unique_ptr<TcpInbox> TcpListener::Register(const GroupSpec& spec, LinkPurpose purpose) {
  const TcpInbox::Key key{spec.generation, spec.group, purpose};
  std::unique_ptr<TcpInbox> inbox(new TcpInbox(this, key, spec));
  MutexLock lock(&mutex_);
  CHECK(inboxes_.emplace(key, inbox.get()).second)
      << "generation " << spec.generation << " group " << spec.group << " is registered twice";
  newest_ = std::max(newest_, spec.generation);
  ended_.erase(key);
  std::erase_if(ended_, [this](const TcpInbox::Key& ended) {
    mutex_.AssertHeld();
    return ended.generation < newest_;
  });
  for (auto parked = parked_.begin(); parked != parked_.end();) {
    const bool stale = parked->claim.generation < newest_;
    if (stale) ++stats_.stale;
    parked = stale || TryDeliverLocked(parked->claim, parked->fd) ? parked_.erase(parked) : std::next(parked);
  }
  return inbox;
}

TcpListener::Stats TcpListener::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

void TcpListener::Run() {
  // Signals are for the threads of the program.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (!stopping_) PollOnce();
}

void TcpListener::PollOnce() {
  std::vector<pollfd> fds = {{stop_.get(), POLLIN, 0}};
  const bool pauses = Now() < AcceptFrom();
  // A negative descriptor is passed over by poll.
  for (const UniqueFd& fd : fds_) fds.push_back({pauses ? -1 : fd.get(), POLLIN, 0});
  for (const Unproven& unproven : unproven_) fds.push_back({unproven.io.fd(), unproven.events, 0});
  ::poll(fds.data(), fds.size(), PollTimeoutMs(NextDeadline()));
  if (fds[0].revents != 0) {
    stopping_ = true;
    return;
  }
  size_t at = 1 + fds_.size();
  for (auto unproven = unproven_.begin(); unproven != unproven_.end(); ++at) {
    const bool stays = fds[at].revents == 0 || Advance(*unproven);
    unproven = stays ? std::next(unproven) : unproven_.erase(unproven);
  }
  for (size_t i = 0; i < fds_.size(); ++i) {
    if (fds[1 + i].revents != 0) AcceptAll(fds_[i].get());
  }
  Expire();
}

void TcpListener::AcceptAll(int listener) {
  while (Now() >= AcceptFrom()) {
    absl::StatusOr<UniqueFd> fd = Accept(listener);
    if (!fd.ok()) {
      LOG(WARNING) << endpoint_ << ": " << fd.status().message();
      accept_from_ = Now() + kAcceptPause;
      return;
    }
    if (!*fd) return;
    if (Full()) {
      Count(&Stats::crowded);
      unproven_.pop_front();
    }
    unproven_.push_back({HandshakeIo(*std::move(fd), Handshake::Server(key_, options_.incarnation)), Now(), POLLIN});
  }
}

Instant TcpListener::AcceptFrom() const {
  if (!Full()) return accept_from_;
  return std::max(accept_from_, unproven_.front().since + options_.unproven_grace);
}

bool TcpListener::Advance(Unproven& unproven) {
  const absl::StatusOr<short> events = unproven.io.Advance();
  if (!events.ok()) {
    LOG(DEBUG) << endpoint_ << ": refused a connection: " << events.status().message();
    Count(&Stats::refused);
    return false;
  }
  unproven.events = *events;
  if (*events != 0) return true;
  Deliver(unproven.io.claim(), unproven.io.TakeFd());
  return false;
}

void TcpListener::Expire() {
  const Instant now = Now();
  while (!unproven_.empty() && unproven_.front().since + options_.handshake_timeout <= now) {
    Count(&Stats::expired);
    unproven_.pop_front();
  }
}

Instant TcpListener::NextDeadline() const {
  Instant next = Instant::Infinite();
  if (!unproven_.empty()) next = unproven_.front().since + options_.handshake_timeout;
  if (Now() < AcceptFrom()) next = std::min(next, AcceptFrom());
  return next;
}

void TcpListener::Deliver(const LinkClaim& claim, UniqueFd fd) {
  MutexLock lock(&mutex_);
  if (TryDeliverLocked(claim, fd)) return;
  if (claim.generation < newest_ || ended_.count({claim.generation, claim.group, claim.purpose}) > 0) {
    ++stats_.stale;
  } else if (static_cast<int>(parked_.size()) >= options_.parked_max) {
    ++stats_.crowded;
  } else {
    parked_.push_back({claim, std::move(fd)});
  }
}

// Whether there is an inbox for it; what does not fit the group that the inbox knows is closed.
bool TcpListener::TryDeliverLocked(const LinkClaim& claim, UniqueFd& fd) {
  const auto found = inboxes_.find(TcpInbox::Key{claim.generation, claim.group, claim.purpose});
  if (found == inboxes_.end()) return false;
  const GroupSpec& spec = found->second->spec_;
  const bool fits = claim.to == spec.rank && claim.from < spec.size() &&
                    spec.members[claim.from].incarnation == claim.from_incarnation;
  if (fits) {
    found->second->Put({claim.from, claim.stream, std::move(fd)});
    ++stats_.delivered;
  } else {
    fd.reset();
    ++stats_.refused;
  }
  return true;
}

void TcpListener::Unregister(TcpInbox* inbox) {
  MutexLock lock(&mutex_);
  inboxes_.erase(inbox->key_);
  if (inbox->key_.generation >= newest_) ended_.insert(inbox->key_);
}

void TcpListener::Count(int64_t Stats::*what) {
  MutexLock lock(&mutex_);
  ++(stats_.*what);
}

}  // namespace farandole
