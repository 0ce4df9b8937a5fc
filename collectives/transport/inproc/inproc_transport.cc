#include "collectives/transport/inproc/inproc_transport.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
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

// What one rank has posted and could not send yet, and what it waits for.
struct Posted {
  uint64_t operation;
  Rank to;
  absl::Span<const std::byte> bytes;
};
struct Wanted {
  uint64_t operation;
  Rank from;
  absl::Span<std::byte> bytes;
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

  absl::Status Post(const GroupSpec& spec, FinishState& finish, const Posted& posted) {
    MutexLock lock(&mutex_);
    places_[spec.rank].posted.push_back(posted);
    absl::Status status = AdvanceSendingLocked(spec);
    return status.ok() ? status : finish.Finish(std::move(status));
  }

  // Until `wanted` has come, if there is one, else until all that was posted is on its way.
  absl::Status Run(const GroupSpec& spec, FinishState& finish, absl::optional<Wanted> wanted, Instant deadline) {
    MutexLock lock(&mutex_);
    Place& place = places_[spec.rank];
    absl::Status error;
    const absl::optional<Rank> from = wanted.has_value() ? absl::optional<Rank>(wanted->from) : absl::nullopt;
    const bool over = place.changed.AwaitUntil(&mutex_, deadline, [&] {
      mutex_.AssertHeld();
      if (finish.finished()) return true;
      error = AdvanceSendingLocked(spec);
      if (error.ok() && wanted.has_value()) error = TryReceiveLocked(spec, wanted);
      return !error.ok() || (from.has_value() ? !wanted.has_value() : place.posted.empty());
    });
    if (finish.finished()) return finish.reason();
    if (!error.ok()) return finish.Finish(std::move(error));
    if (over) return absl::OkStatus();
    std::vector<Rank> to;
    for (const Posted& posted : place.posted) {
      if (std::find(to.begin(), to.end(), posted.to) == to.end()) to.push_back(posted.to);
    }
    return finish.Finish(DeadlinePassed(spec, to, from));
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
    std::deque<Posted> posted;  // what its links have no room for yet
    CondVar changed;
  };

  // In the order of posting per receiver.
  absl::Status AdvanceSendingLocked(const GroupSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Place& place = places_[spec.rank];
    std::deque<Posted> kept;
    std::set<Rank> full;
    for (const Posted& posted : place.posted) {
      RETURN_IF_ERROR(CheckLinkLocked(spec, posted.to));
      Pipe& pipe = pipes_[spec.rank][posted.to];
      if (pipe.bytes >= kLinkBytes || full.count(posted.to) != 0) {
        full.insert(posted.to);
        kept.push_back(posted);
        continue;
      }
      pipe.frames.push_back({posted.operation, {posted.bytes.begin(), posted.bytes.end()}});
      pipe.bytes += static_cast<int64_t>(posted.bytes.size());
      if (place.messages_left > 0 && --place.messages_left == 0) place.cut = true;
      NotifyAllLocked();
    }
    place.posted.swap(kept);
    return absl::OkStatus();
  }

  // Takes what is wanted if it is there.
  absl::Status TryReceiveLocked(const GroupSpec& spec, absl::optional<Wanted>& wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Rank from = wanted->from;
    Pipe& pipe = pipes_[from][spec.rank];
    if (places_[from].stalled) return absl::OkStatus();
    if (pipe.frames.empty()) return CheckLinkLocked(spec, from);
    const Frame frame = std::move(pipe.frames.front());
    pipe.frames.pop_front();
    pipe.bytes -= static_cast<int64_t>(frame.bytes.size());
    NotifyAllLocked();
    RETURN_IF_ERROR(
        CheckFrame(spec, from, frame.operation, frame.bytes.size(), wanted->operation, wanted->bytes.size()));
    std::copy(frame.bytes.begin(), frame.bytes.end(), wanted->bytes.begin());
    wanted.reset();
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

  absl::Status Post(uint64_t operation, Rank to, absl::Span<const std::byte> bytes) override {
    RETURN_IF_ERROR(CheckPost(spec_, to, bytes));
    RETURN_IF_ERROR(finish_.CheckStart());
    if (bytes.empty()) return absl::OkStatus();
    return hub_->Post(spec_, finish_, {operation, to, bytes});
  }

  absl::Status Receive(uint64_t operation, Rank from, absl::Span<std::byte> bytes, Instant deadline) override {
    RETURN_IF_ERROR(CheckReceive(spec_, from, bytes));
    RETURN_IF_ERROR(finish_.CheckStart());
    if (bytes.empty()) return absl::OkStatus();
    return hub_->Run(spec_, finish_, Wanted{operation, from, bytes}, deadline);
  }

  absl::Status Flush(Instant deadline) override {
    RETURN_IF_ERROR(finish_.CheckStart());
    return hub_->Run(spec_, finish_, absl::nullopt, deadline);
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
