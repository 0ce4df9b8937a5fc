#include "collectives/transport/inproc/inproc_control_channel.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/transport/checks.h"
#include "tools/base/check.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {

class InprocControlGroup::Hub {
 public:
  explicit Hub(int size) : size_(size), places_(size) {}

  int size() const { return size_; }

  void Join(Rank rank) {
    MutexLock lock(&mutex_);
    CHECK(rank >= 0 && rank < size() && !places_[rank].joined) << "rank " << rank << " of " << size();
    places_[rank].joined = true;
  }

  void Send(Rank from, Rank to, std::string message) {
    MutexLock lock(&mutex_);
    Link& link = places_[from == 0 ? to : from].link;
    if (!link.up) return;
    ControlChannel::Event event{ControlChannel::Event::kMessage, from, std::move(message)};
    if (from != 0 && link.stalled) {
      link.held.push_back(std::move(event));
    } else {
      PushLocked(to, std::move(event));
    }
    if (from != 0 && link.messages_left > 0 && --link.messages_left == 0) CutLocked(from);
  }

  ControlChannel::Event Receive(Rank rank, Instant deadline) {
    MutexLock lock(&mutex_);
    Place& place = places_[rank];
    const bool ready = place.changed.AwaitUntil(&mutex_, deadline, [&] {
      mutex_.AssertHeld();
      return place.woken || !place.inbox.empty();
    });
    if (!ready) return {};
    if (place.woken) {
      place.woken = false;
      return {ControlChannel::Event::kWoken, rank, ""};
    }
    ControlChannel::Event event = std::move(place.inbox.front());
    place.inbox.pop_front();
    return event;
  }

  void Wake(Rank rank) {
    MutexLock lock(&mutex_);
    places_[rank].woken = true;
    places_[rank].changed.NotifyAll();
  }

  void Leave(Rank rank) {
    MutexLock lock(&mutex_);
    if (places_[rank].left) return;
    places_[rank].left = true;
    for (Rank peer = 1; peer < size(); ++peer) {
      if (rank == 0 || rank == peer) CutLocked(peer);
    }
  }

  void CutLink(Rank rank, int64_t messages) {
    MutexLock lock(&mutex_);
    if (messages > 0) {
      places_[rank].link.messages_left = messages;
    } else {
      CutLocked(rank);
    }
  }

  void SetStalled(Rank rank, bool stalled) {
    MutexLock lock(&mutex_);
    Link& link = places_[rank].link;
    link.stalled = stalled;
    while (!stalled && !link.held.empty()) {
      PushLocked(0, std::move(link.held.front()));
      link.held.pop_front();
    }
  }

 private:
  // Between rank 0 and the place's rank.
  struct Link {
    bool up = true;
    bool stalled = false;
    int64_t messages_left = 0;  // until it is cut; 0: never
    std::deque<ControlChannel::Event> held;
  };

  struct Place {
    bool joined = false;
    bool left = false;
    bool woken = false;
    std::deque<ControlChannel::Event> inbox;
    CondVar changed;
    Link link;
  };

  void PushLocked(Rank to, ControlChannel::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (places_[to].left) return;
    places_[to].inbox.push_back(std::move(event));
    places_[to].changed.NotifyAll();
  }

  void CutLocked(Rank rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Link& link = places_[rank].link;
    if (!link.up) return;
    link.up = false;
    ControlChannel::Event at_zero{ControlChannel::Event::kPeerLost, rank, "its control link was closed"};
    if (link.stalled) {
      link.held.push_back(std::move(at_zero));
    } else {
      PushLocked(0, std::move(at_zero));
    }
    PushLocked(rank, {ControlChannel::Event::kPeerLost, 0, "its control link was closed"});
  }

  const int size_;
  Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);
};

class InprocControlGroup::Channel : public ControlChannel {
 public:
  Channel(std::shared_ptr<Hub> hub, Rank rank) : hub_(std::move(hub)), rank_(rank) { hub_->Join(rank_); }
  ~Channel() override { hub_->Leave(rank_); }

  Rank rank() const override { return rank_; }
  int size() const override { return hub_->size(); }

  absl::Status Send(Rank to, std::string message) override {
    RETURN_IF_ERROR(CheckControlSend(rank_, size(), to, message));
    hub_->Send(rank_, to, std::move(message));
    return absl::OkStatus();
  }
  Event Receive(Instant deadline) override { return hub_->Receive(rank_, deadline); }
  void Wake() override { hub_->Wake(rank_); }
  void Close(Instant deadline) override { hub_->Leave(rank_); }

 private:
  const std::shared_ptr<Hub> hub_;
  const Rank rank_;
};

InprocControlGroup::InprocControlGroup(int size) : hub_(std::make_shared<Hub>(size)) {}
InprocControlGroup::~InprocControlGroup() = default;

std::unique_ptr<ControlChannel> InprocControlGroup::Join(Rank rank) { return std::make_unique<Channel>(hub_, rank); }
void InprocControlGroup::CutLink(Rank rank, int64_t messages) { hub_->CutLink(rank, messages); }
void InprocControlGroup::Stall(Rank rank) { hub_->SetStalled(rank, true); }
void InprocControlGroup::Resume(Rank rank) { hub_->SetStalled(rank, false); }

}  // namespace farandole
