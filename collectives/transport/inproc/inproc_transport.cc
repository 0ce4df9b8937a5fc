#include "collectives/transport/inproc/inproc_transport.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/core/finish_state.h"
#include "collectives/transport/checks.h"
#include "tools/base/check.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr int64_t kLinkBytes = 64 << 10;

struct Frame {
  uint64_t operation = 0;
  std::vector<std::byte> bytes;
};

struct Pipe {
  std::deque<Frame> frames;
  int64_t bytes = 0;
};

// One SendRecv that is going on.
struct Exchange {
  uint64_t operation;
  Rank to;
  absl::Span<const std::byte> out;
  Rank from;
  absl::Span<std::byte> in;
  bool sent;
  bool received;
};

}  // namespace

// What the transports of the group share. One lock for all: the order of events is what tests are about, not speed.
class InprocTransportGroup::Hub {
 public:
  explicit Hub(int size) : places_(size), pipes_(size, std::vector<Pipe>(size)) {
    for (Rank rank = 0; rank < size; ++rank) {
      spec_.members.push_back({absl::StrCat("host", rank), Incarnation(rank + 1), ""});
    }
    spec_.generation = Generation(1);
  }

  GroupSpec SpecOf(Rank rank) const {
    GroupSpec spec = spec_;
    spec.rank = rank;
    return spec;
  }

  void Join(Rank rank) {
    MutexLock lock(&mutex_);
    CHECK(rank >= 0 && rank < spec_.size() && !places_[rank].joined) << "rank " << rank << " of " << spec_.size();
    places_[rank].joined = true;
  }

  absl::Status SendRecv(const GroupSpec& spec, FinishState& finish, Exchange exchange, Instant deadline) {
    MutexLock lock(&mutex_);
    absl::Status error;
    const bool over = places_[spec.rank].changed.AwaitUntil(&mutex_, deadline, [&] {
      mutex_.AssertHeld();
      if (finish.finished()) return true;
      error = AdvanceLocked(spec, exchange);
      return !error.ok() || (exchange.sent && exchange.received);
    });
    if (finish.finished()) return finish.reason();
    if (!error.ok()) return finish.Finish(std::move(error));
    if (over) return absl::OkStatus();
    return finish.Finish(DeadlinePassed(spec, exchange.to, exchange.sent, exchange.from, exchange.received));
  }

  void Wake(Rank rank) {
    MutexLock lock(&mutex_);
    places_[rank].changed.NotifyAll();
  }

  void CutLinks(Rank rank, int64_t messages) {
    MutexLock lock(&mutex_);
    places_[rank].messages_left = messages;
    places_[rank].cut = messages == 0;
    NotifyAllLocked();
  }

  void SetStalled(Rank rank, bool stalled) {
    MutexLock lock(&mutex_);
    places_[rank].stalled = stalled;
    NotifyAllLocked();
  }

 private:
  struct Place {
    bool joined = false;
    bool cut = false;
    bool stalled = false;
    int64_t messages_left = 0;  // until it is cut; 0: no such script
    CondVar changed;
  };

  absl::Status AdvanceLocked(const GroupSpec& spec, Exchange& exchange) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!exchange.sent) {
      RETURN_IF_ERROR(TrySendLocked(spec, exchange));
    }
    if (!exchange.received) {
      RETURN_IF_ERROR(TryReceiveLocked(spec, exchange));
    }
    return absl::OkStatus();
  }

  absl::Status TrySendLocked(const GroupSpec& spec, Exchange& exchange) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    RETURN_IF_ERROR(CheckLinkLocked(spec, exchange.to));
    Pipe& pipe = pipes_[spec.rank][exchange.to];
    if (pipe.bytes >= kLinkBytes) return absl::OkStatus();
    pipe.frames.push_back({exchange.operation, {exchange.out.begin(), exchange.out.end()}});
    pipe.bytes += static_cast<int64_t>(exchange.out.size());
    exchange.sent = true;
    Place& place = places_[spec.rank];
    if (place.messages_left > 0 && --place.messages_left == 0) place.cut = true;
    NotifyAllLocked();
    return absl::OkStatus();
  }

  absl::Status TryReceiveLocked(const GroupSpec& spec, Exchange& exchange) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Pipe& pipe = pipes_[exchange.from][spec.rank];
    if (places_[exchange.from].stalled) return absl::OkStatus();
    if (pipe.frames.empty()) return CheckLinkLocked(spec, exchange.from);
    const Frame frame = std::move(pipe.frames.front());
    pipe.frames.pop_front();
    pipe.bytes -= static_cast<int64_t>(frame.bytes.size());
    NotifyAllLocked();
    RETURN_IF_ERROR(
        CheckFrame(spec, exchange.from, frame.operation, frame.bytes.size(), exchange.operation, exchange.in.size()));
    std::copy(frame.bytes.begin(), frame.bytes.end(), exchange.in.begin());
    exchange.received = true;
    return absl::OkStatus();
  }

  absl::Status CheckLinkLocked(const GroupSpec& spec, Rank peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!places_[peer].cut && !places_[spec.rank].cut) return absl::OkStatus();
    return PeerLost(spec, peer, "the link was cut");
  }

  void NotifyAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Place& place : places_) place.changed.NotifyAll();
  }

  GroupSpec spec_;  // constant after construction
  Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<Pipe>> pipes_ ABSL_GUARDED_BY(mutex_);  // [from][to]
};

class InprocTransportGroup::Link : public Transport {
 public:
  Link(std::shared_ptr<Hub> hub, Rank rank) : hub_(std::move(hub)), spec_(hub_->SpecOf(rank)) { hub_->Join(rank); }
  ~Link() override { hub_->CutLinks(spec_.rank, 0); }

  Rank rank() const override { return spec_.rank; }
  int size() const override { return spec_.size(); }

  absl::Status SendRecv(uint64_t operation, Rank to, absl::Span<const std::byte> out, Rank from,
                        absl::Span<std::byte> in, Instant deadline) override {
    RETURN_IF_ERROR(CheckPeers(spec_, to, out, from, in));
    RETURN_IF_ERROR(finish_.CheckStart());
    return hub_->SendRecv(spec_, finish_, {operation, to, out, from, in, out.empty(), in.empty()}, deadline);
  }

  void Abort(absl::string_view reason) override {
    finish_.Abort(reason);
    hub_->Wake(spec_.rank);
  }

 private:
  const std::shared_ptr<Hub> hub_;
  const GroupSpec spec_;
  FinishState finish_;
};

InprocTransportGroup::InprocTransportGroup(int size) : hub_(std::make_shared<Hub>(size)) {}
InprocTransportGroup::~InprocTransportGroup() = default;

GroupSpec InprocTransportGroup::spec(Rank rank) const { return hub_->SpecOf(rank); }
std::unique_ptr<Transport> InprocTransportGroup::Join(Rank rank) { return std::make_unique<Link>(hub_, rank); }
void InprocTransportGroup::CutLinks(Rank rank, int64_t messages) { hub_->CutLinks(rank, messages); }
void InprocTransportGroup::Stall(Rank rank) { hub_->SetStalled(rank, true); }
void InprocTransportGroup::Resume(Rank rank) { hub_->SetStalled(rank, false); }

}  // namespace farandole
