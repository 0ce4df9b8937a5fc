#include "collectives/transport/tcp/tcp_control_channel.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/tcp/control_link.h"
#include "collectives/transport/tcp/tcp_link.h"
#include "collectives/transport/tcp/wake_fd.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// While closing: how often to ask whether the peers' machines have everything. There is no event for it.
constexpr absl::Duration kCloseStep = absl::Milliseconds(1);

class TcpControlChannel : public ControlChannel {
 public:
  TcpControlChannel(GroupSpec spec, TcpListener& listener)
      : spec_(std::move(spec)),
        inbox_(listener.Register(spec_, LinkPurpose::kControl)),
        owner_pid_(::getpid()),
        links_(spec_.size()) {
    if (spec_.rank == 0) return;
    absl::StatusOr<Dial> dial = BeginLink(spec_, 0, LinkPurpose::kControl, listener);
    if (dial.ok()) {
      links_[0].Start(*std::move(dial),
                      [this, &listener](Dial& proven) { return TakeLink(proven, spec_, 0, listener); });
    } else {
      Lose(0, absl::StrCat("connecting ", dial.status().message()));
    }
  }

  // A forked child only gives up its copies of the descriptors.
  ~TcpControlChannel() override {
    if (::getpid() != owner_pid_) return;
    for (ControlLink& link : links_) link.End();
  }

  Rank rank() const override { return spec_.rank; }
  int size() const override { return spec_.size(); }

  absl::Status Send(Rank to, std::string message) override {
    RETURN_IF_ERROR(CheckControlSend(rank(), size(), to, message));
    links_[to].Queue(std::move(message));
    Flush(to);
    return absl::OkStatus();
  }

  Event Receive(Instant deadline) override {
    while (true) {
      if (woken_.Clear()) return {Event::kWoken, rank(), ""};
      if (!events_.empty()) {
        Event event = std::move(events_.front());
        events_.pop_front();
        return event;
      }
      if (!Wait(deadline) && !deadline.is_infinite() && Now() >= deadline) return {};
    }
  }

  void Wake() override { woken_.Set(); }

  void Close(Instant deadline) override {
    while (AnyOutput() && Now() < deadline) {
      Wait(deadline);
      woken_.Clear();
    }
    while (!CloseAll(Now() >= deadline)) ::poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kCloseStep)));
  }

 private:
  // Waits for the sockets and handles what is ready. Whether anything was.
  bool Wait(Instant deadline) {
    std::vector<pollfd> fds = {{woken_.get(), POLLIN, 0}, {inbox_->fd(), POLLIN, 0}};
    for (const ControlLink& link : links_) fds.push_back({link.fd(), link.events(), 0});
    if (::poll(fds.data(), fds.size(), PollTimeoutMs(deadline)) <= 0) return false;
    for (Rank peer = 0; peer < size(); ++peer) {
      if (fds[2 + peer].revents != 0) Handle(peer);
    }
    if (fds[1].revents != 0) TakeArrivals();
    return true;
  }

  void TakeArrivals() {
    while (absl::optional<TcpInbox::Arrival> arrival = inbox_->Take()) {
      ControlLink& link = links_[arrival->from];
      // A second link from the same rank, or one to a rank that is not the centre, has no use.
      if (rank() != 0 || link.connected() || link.ended()) continue;
      link.Start(std::move(arrival->fd));
      Handle(arrival->from);
    }
  }

  void Handle(Rank peer) {
    Flush(peer);
    while (!links_[peer].ended()) {
      absl::StatusOr<absl::optional<std::string>> message = links_[peer].Receive();
      if (!message.ok()) return Lose(peer, message.status().message());
      if (!message->has_value()) return;
      events_.push_back({Event::kMessage, peer, **std::move(message)});
    }
  }

  void Flush(Rank peer) {
    const absl::Status status = links_[peer].Flush();
    if (!status.ok()) Lose(peer, absl::StrCat("connecting ", status.message()));
  }

  void Lose(Rank peer, absl::string_view how) {
    links_[peer].End();
    events_.push_back({Event::kPeerLost, peer, std::string(how)});
  }

  // Also for a peer whose link is still on its way: the word that the group is over is meant for it as well.
  bool AnyOutput() const {
    return std::any_of(links_.begin(), links_.end(), [](const ControlLink& link) { return link.has_output(); });
  }

  bool CloseAll(bool force) {
    bool closed = true;
    for (ControlLink& link : links_) closed = (link.ended() || link.Close(force)) && closed;
    return closed;
  }

  const GroupSpec spec_;
  const std::unique_ptr<TcpInbox> inbox_;
  const int owner_pid_;
  std::vector<ControlLink> links_;  // by rank; only those of the star are ever started
  std::deque<Event> events_;
  WakeFd woken_;
};

}  // namespace

std::unique_ptr<ControlChannel> CreateTcpControlChannel(const GroupSpec& spec, TcpListener& listener) {
  return std::make_unique<TcpControlChannel>(spec, listener);
}

}  // namespace farandole
