#include "collectives/transport/tcp/tcp_transport.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "collectives/core/finish_state.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/tcp/frame.h"
#include "collectives/transport/tcp/stripes.h"
#include "collectives/transport/tcp/tcp_link.h"
#include "collectives/transport/tcp/wake_fd.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Between hosts. Inside one there is no network queue to spread over.
constexpr int kStreams = 4;
static_assert(kStreams <= kStreamsMax);

// How long a rank asks again and again before it sleeps. To be put to sleep and woken costs some tens of microseconds
// over the loopback device, and two ranks that wake each other are easily put on one processor; the gaps within a
// stream of long messages are longer than that.
constexpr absl::Duration kSpin = absl::Microseconds(200);
// Up to here the bytes come at once or not at all, so one tries to read them; of longer messages one asks first, since
// trying would take the connection's lock from the system, which is bringing the rest in.
constexpr uint64_t kTryBytes = 16 << 10;
constexpr int kSpinsPerLookAtTheClock = 8;
// With more ranks than processors spinning takes the time from those one waits for; giving the processor away does not.
constexpr int kYields = 8;

// The address without the port of the first endpoint.
absl::string_view FirstAddress(const GroupMember& member) {
  const absl::string_view endpoint = member.endpoint;
  return endpoint.substr(0, endpoint.substr(0, endpoint.find(',')).rfind(':'));
}

// Whether more ranks of the group share this machine than it has processors: those of the same host, and those that are
// reached at the same address under another name.
bool Crowded(const GroupSpec& spec) {
  const GroupMember& self = spec.members[spec.rank];
  const auto here = std::count_if(spec.members.begin(), spec.members.end(), [&self](const GroupMember& member) {
    return member.host == self.host || FirstAddress(member) == FirstAddress(self);
  });
  cpu_set_t set;
  const int processors = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return here > processors;
}

// One connection to a peer: nothing, then a dial, then bytes.
struct OutStream {
  absl::optional<Dial> dial;
  UniqueFd fd;
  std::deque<SendingFrame> frames;  // posted; the first one is on its way
};

// One message that is coming in, a stripe through each of the first streams.
struct Incoming {
  uint64_t operation;
  Rank from;
  uint64_t length;
  std::array<absl::optional<ReceivingFrame>, kStreams> frames;
  int unfinished = 0;
};

// How long a link of a peer that has ended may be on its way through our listener.
constexpr absl::Duration kArrivalGrace = absl::Milliseconds(500);

class TcpTransport : public Transport {
 public:
  TcpTransport(GroupSpec spec, TcpListener& listener)
      : spec_(std::move(spec)),
        listener_(listener),
        inbox_(listener.Register(spec_, LinkPurpose::kData)),
        owner_pid_(::getpid()),
        crowded_(Crowded(spec_)),
        outgoing_(spec_.size()),
        incoming_(spec_.size()) {}

  ~TcpTransport() override {
    for (auto& streams : outgoing_) {
      for (OutStream& stream : streams) EndLink(stream.fd, owner_pid_);
    }
    for (auto& streams : incoming_) {
      for (UniqueFd& fd : streams) EndLink(fd, owner_pid_);
    }
  }

  Rank rank() const override { return spec_.rank; }
  int size() const override { return spec_.size(); }

  absl::Status Post(uint64_t operation, Rank to, absl::Span<const std::byte> bytes) override {
    RETURN_IF_ERROR(CheckPost(spec_, to, bytes));
    RETURN_IF_ERROR(finish_.CheckStart());
    if (bytes.empty()) return absl::OkStatus();
    const int stripes = StripesOf(bytes.size(), StreamsTo(to));
    const DataHeader header{spec_.generation, spec_.group, operation, bytes.size()};
    absl::Status status;
    for (int i = 0; i < stripes && status.ok(); ++i) {
      const Segment stripe = StripeOf(bytes.size(), stripes, i);
      std::deque<SendingFrame>& frames = outgoing_[to][i].frames;
      frames.emplace_back(header, bytes.subspan(stripe.begin, stripe.size()));
      if (frames.size() > 1) continue;  // behind one that could not go yet
      busy_.push_back({to, i});
      status = AdvanceSending(busy_.back()).status();
      if (frames.empty()) busy_.pop_back();
    }
    return status.ok() ? status : finish_.Finish(status);
  }

  absl::Status Receive(uint64_t operation, Rank from, absl::Span<std::byte> bytes, Instant deadline) override {
    RETURN_IF_ERROR(CheckReceive(spec_, from, bytes));
    RETURN_IF_ERROR(finish_.CheckStart());
    if (bytes.empty()) return absl::OkStatus();
    Incoming incoming{operation, from, bytes.size(), {}, StripesOf(bytes.size(), StreamsTo(from))};
    for (int i = 0; i < incoming.unfinished; ++i) {
      const Segment stripe = StripeOf(bytes.size(), incoming.unfinished, i);
      incoming.frames[i].emplace(bytes.subspan(stripe.begin, stripe.size()));
    }
    const absl::Status status = Run(&incoming, deadline);
    return status.ok() ? status : finish_.Finish(status);
  }

  absl::Status Flush(Instant deadline) override {
    RETURN_IF_ERROR(finish_.CheckStart());
    const absl::Status status = Run(nullptr, deadline);
    return status.ok() ? status : finish_.Finish(status);
  }

  void Abort(absl::string_view reason) override {
    finish_.Abort(reason);
    aborted_.Set();
  }

 private:
  // A stream that has frames to send.
  struct Busy {
    Rank to;
    int stream;
  };

  // The same seen from both ends.
  int StreamsTo(Rank peer) const { return spec_.members[peer].host == spec_.members[spec_.rank].host ? 1 : kStreams; }

  bool Done(const Incoming* incoming) const { return incoming != nullptr ? incoming->unfinished == 0 : busy_.empty(); }

  // Until the message has come, if there is one, else until everything is sent.
  absl::Status Run(Incoming* incoming, Instant deadline) {
    while (!Done(incoming)) {
      ASSIGN_OR_RETURN(const bool moved, Advance(incoming));
      if (moved || Done(incoming)) continue;
      if (!deadline.is_infinite() && Now() >= deadline) return PassedDeadline(incoming);
      RETURN_IF_ERROR(Wait(incoming, deadline));
    }
    return absl::OkStatus();
  }

  // Whether anything moved.
  absl::StatusOr<bool> Advance(Incoming* incoming) {
    if (finish_.finished()) return finish_.reason();
    bool moved = false;
    if (incoming != nullptr) {
      ASSIGN_OR_RETURN(moved, AdvanceReceiving(*incoming));
    }
    for (size_t i = 0; i < busy_.size();) {
      ASSIGN_OR_RETURN(const bool sent, AdvanceSending(busy_[i]));
      moved = moved || sent;
      if (outgoing_[busy_[i].to][busy_[i].stream].frames.empty()) {
        busy_.erase(busy_.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    return moved;
  }

  absl::StatusOr<bool> AdvanceSending(const Busy& busy) {
    OutStream& stream = outgoing_[busy.to][busy.stream];
    if (!stream.fd) {
      RETURN_IF_ERROR(AdvanceDial(busy, stream));
    }
    if (!stream.fd) return false;
    absl::StatusOr<bool> moved = stream.frames.front().Advance(stream.fd.get());
    if (!moved.ok()) return PeerLost(spec_, busy.to, moved.status().message());
    if (stream.frames.front().done()) stream.frames.pop_front();
    return moved;
  }

  absl::Status AdvanceDial(const Busy& busy, OutStream& stream) {
    if (!stream.dial.has_value()) {
      ASSIGN_OR_RETURN(stream.dial, BeginLink(spec_, busy.to, LinkPurpose::kData, listener_, busy.stream),
                       LinkFailed(spec_, busy.to, std::move(_)));
    }
    const absl::StatusOr<bool> proven = stream.dial->Advance();
    if (!proven.ok()) return LinkFailed(spec_, busy.to, proven.status());
    if (*proven) {
      stream.fd = TakeLink(*stream.dial, spec_, busy.to, listener_);
      stream.dial.reset();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> AdvanceReceiving(Incoming& incoming) {
    bool moved = false;
    for (int i = 0; i < kStreams && incoming.frames[i].has_value(); ++i) {
      ReceivingFrame& frame = *incoming.frames[i];
      if (frame.done()) continue;
      UniqueFd& fd = incoming_[incoming.from][i];
      if (!fd) TakeArrivals();
      if (!fd) continue;
      const absl::StatusOr<bool> came = frame.Advance(fd.get());
      if (!came.ok()) return PeerLost(spec_, incoming.from, came.status().message());
      if (const auto header = frame.TakeHeader()) {
        RETURN_IF_ERROR(CheckHeader(incoming, *header));
      }
      moved = moved || *came;
      if (frame.done()) --incoming.unfinished;
    }
    return moved;
  }

  // A second link for the same stream has no use, and is closed; so is one for a stream that there is not.
  void TakeArrivals() {
    while (absl::optional<TcpInbox::Arrival> arrival = inbox_->Take()) {
      if (arrival->stream >= kStreams) continue;
      UniqueFd& fd = incoming_[arrival->from][arrival->stream];
      if (!fd) fd = std::move(arrival->fd);
    }
  }

  absl::Status CheckHeader(const Incoming& incoming, absl::string_view bytes) const {
    const absl::optional<DataHeader> header = DecodeDataHeader(bytes);
    if (!header.has_value() || header->generation != spec_.generation || header->group != spec_.group) {
      return absl::InternalError(absl::StrCat(Describe(spec_, incoming.from),
                                              " sends what is no message of generation ", spec_.generation.value(),
                                              ", group ", spec_.group));
    }
    return CheckFrame(spec_, incoming.from, header->operation, header->length, incoming.operation, incoming.length);
  }

  absl::Status PassedDeadline(const Incoming* incoming) const {
    std::vector<Rank> to;
    for (const Busy& busy : busy_) {
      if (std::find(to.begin(), to.end(), busy.to) == to.end()) to.push_back(busy.to);
    }
    const absl::Status passed =
        DeadlinePassed(spec_, to, incoming != nullptr ? absl::optional<Rank>(incoming->from) : absl::nullopt);
    for (const Busy& busy : busy_) {
      const OutStream& stream = outgoing_[busy.to][busy.stream];
      if (!stream.dial.has_value()) continue;
      return absl::DeadlineExceededError(
          absl::StrCat(passed.message(), "; it was still connecting ", stream.dial->Describe()));
    }
    return passed;
  }

  // Until something can go on.
  absl::Status Wait(Incoming* incoming, Instant deadline) {
    bool awake = false;
    if (incoming != nullptr && incoming->length <= kTryBytes && busy_.empty()) {
      ASSIGN_OR_RETURN(awake, Spin([&] { return Advance(incoming); }));
      if (awake) return absl::OkStatus();
      CollectPolled(incoming);  // after the tries: they may have taken a link in
    } else {
      CollectPolled(incoming);
      ASSIGN_OR_RETURN(awake,
                       Spin([&]() -> absl::StatusOr<bool> { return ::poll(polled_.data(), polled_.size(), 0) > 0; }));
    }
    if (!awake) ::poll(polled_.data(), polled_.size(), PollTimeoutMs(deadline));
    for (size_t i = 0; i < busy_.size(); ++i) {
      if ((polled_[i].revents & POLLRDHUP) != 0) return PeerLost(spec_, busy_[i].to, "it closed the connection");
    }
    return incoming != nullptr ? CheckSender(*incoming) : absl::OkStatus();
  }

  // A sender that has ended before it has connected shows on our links to it only. What it sent before may still be on
  // its way through the listener.
  absl::Status CheckSender(const Incoming& incoming) {
    const bool ended = std::any_of(polled_.begin() + static_cast<ptrdiff_t>(links_at_), polled_.end(),
                                   [](const pollfd& link) { return (link.revents & POLLRDHUP) != 0; });
    if (!ended) {
      ended_since_ = Instant::Infinite();
      return absl::OkStatus();
    }
    ended_since_ = std::min(ended_since_, Now());
    if (Now() < ended_since_ + kArrivalGrace) return absl::OkStatus();
    return PeerLost(spec_, incoming.from, "it closed the connection");
  }

  // Asks `look` until it says yes or it is time to sleep.
  template <typename Look>
  absl::StatusOr<bool> Spin(const Look& look) {
    const Instant end = Now() + kSpin;
    int looks = 0;
    do {
      ASSIGN_OR_RETURN(const bool awake, look());
      if (awake) return true;
      if (crowded_) ::sched_yield();
      ++looks;
    } while (crowded_ ? looks < kYields : looks % kSpinsPerLookAtTheClock != 0 || Now() < end);
    return false;
  }

  // What each of `busy_` waits for, in their order, then the rest.
  void CollectPolled(const Incoming* incoming) {
    polled_.clear();
    // What a peer does with a link that it only receives from, other than taking bytes, is ending it.
    for (const Busy& busy : busy_) {
      const OutStream& stream = outgoing_[busy.to][busy.stream];
      polled_.push_back(stream.fd ? pollfd{stream.fd.get(), POLLOUT | POLLRDHUP, 0}
                                  : pollfd{stream.dial->fd(), POLLIN, 0});
    }
    polled_.push_back({aborted_.get(), POLLIN, 0});
    bool awaits_link = false;
    for (int i = 0; incoming != nullptr && i < kStreams && incoming->frames[i].has_value(); ++i) {
      if (incoming->frames[i]->done()) continue;
      const UniqueFd& fd = incoming_[incoming->from][i];
      polled_.push_back({fd ? fd.get() : inbox_->fd(), POLLIN, 0});
      awaits_link = awaits_link || !fd;
    }
    links_at_ = polled_.size();
    for (int i = 0; awaits_link && i < kStreams; ++i) {
      const OutStream& stream = outgoing_[incoming->from][i];
      if (stream.fd && stream.frames.empty()) polled_.push_back({stream.fd.get(), POLLRDHUP, 0});
    }
  }

  const GroupSpec spec_;
  TcpListener& listener_;
  const std::unique_ptr<TcpInbox> inbox_;
  const int owner_pid_;
  const bool crowded_;
  std::vector<std::array<OutStream, kStreams>> outgoing_;
  std::vector<std::array<UniqueFd, kStreams>> incoming_;
  std::vector<Busy> busy_;
  std::vector<pollfd> polled_;                 // memory of Wait
  size_t links_at_ = 0;                        // in it: our links to a sender that has not connected
  Instant ended_since_ = Instant::Infinite();  // that one of them has been ended
  FinishState finish_;
  WakeFd aborted_;
};

}  // namespace

std::unique_ptr<Transport> CreateTcpTransport(const GroupSpec& spec, TcpListener& listener) {
  return std::make_unique<TcpTransport>(spec, listener);
}

}  // namespace farandole
