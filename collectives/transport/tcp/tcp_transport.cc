#include "collectives/transport/tcp/tcp_transport.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/core/finish_state.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/tcp/socket.h"
#include "collectives/transport/tcp/tcp_link.h"
#include "collectives/transport/tcp/wake_fd.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

iovec Piece(absl::Span<const std::byte> bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

// A message on its way out: header and bytes, as far as they are gone.
class Sending {
 public:
  Sending(const DataHeader& header, absl::Span<const std::byte> bytes)
      : header_(EncodeDataHeader(header)),
        pieces_{iovec{header_.data(), header_.size()}, Piece(bytes)},
        left_(absl::MakeSpan(pieces_)) {}
  Sending(const Sending&) = delete;

  bool done() const { return left_.empty(); }

  // Whether anything moved.
  absl::StatusOr<bool> Advance(int fd) {
    ASSIGN_OR_RETURN(const size_t sent, SendSome(fd, left_));
    farandole::Advance(left_, sent);
    return sent > 0;
  }

 private:
  std::string header_;
  std::array<iovec, 2> pieces_;
  absl::Span<iovec> left_;
};

// A message on its way in. Header and bytes are read together, so a short message costs one system call: never more
// than this message, because the length was agreed before it came.
class Receiving {
 public:
  explicit Receiving(absl::Span<std::byte> bytes)
      : header_(kDataHeaderBytes, '\0'),
        pieces_{iovec{header_.data(), header_.size()}, Piece(bytes)},
        left_(absl::MakeSpan(pieces_)) {}
  Receiving(const Receiving&) = delete;

  bool done() const { return left_.empty(); }

  absl::StatusOr<bool> Advance(int fd) {
    ASSIGN_OR_RETURN(const size_t received, ReceiveSome(fd, left_));
    farandole::Advance(left_, received);
    return received > 0;
  }

  // The header, the first time it is complete.
  absl::optional<absl::string_view> TakeHeader() {
    if (header_taken_ || left_.size() == pieces_.size()) return absl::nullopt;
    header_taken_ = true;
    return absl::string_view(header_);
  }

 private:
  std::string header_;
  std::array<iovec, 2> pieces_;
  absl::Span<iovec> left_;
  bool header_taken_ = false;
};

// One SendRecv that is going on.
struct Exchange {
  uint64_t operation;
  Rank to;
  absl::optional<Sending> sending;
  Rank from;
  uint64_t length_in;
  absl::optional<Receiving> receiving;

  bool sent() const { return !sending.has_value() || sending->done(); }
  bool received() const { return !receiving.has_value() || receiving->done(); }
  bool done() const { return sent() && received(); }
};

class TcpTransport : public Transport {
 public:
  TcpTransport(GroupSpec spec, TcpListener& listener)
      : spec_(std::move(spec)),
        listener_(listener),
        inbox_(listener.Register(spec_, LinkPurpose::kData)),
        owner_pid_(::getpid()),
        outgoing_(spec_.size()),
        incoming_(spec_.size()) {}

  ~TcpTransport() override {
    for (OutLink& link : outgoing_) EndLink(link.fd, owner_pid_);
    for (UniqueFd& fd : incoming_) EndLink(fd, owner_pid_);
  }

  Rank rank() const override { return spec_.rank; }
  int size() const override { return spec_.size(); }

  absl::Status SendRecv(uint64_t operation, Rank to, absl::Span<const std::byte> out, Rank from,
                        absl::Span<std::byte> in, Instant deadline) override {
    RETURN_IF_ERROR(CheckPeers(spec_, to, out, from, in));
    RETURN_IF_ERROR(finish_.CheckStart());
    Exchange exchange{operation, to, absl::nullopt, from, in.size(), absl::nullopt};
    if (!out.empty()) exchange.sending.emplace(DataHeader{spec_.generation, spec_.group, operation, out.size()}, out);
    if (!in.empty()) exchange.receiving.emplace(in);
    const absl::Status status = Run(exchange, deadline);
    return status.ok() ? status : finish_.Finish(status);
  }

  void Abort(absl::string_view reason) override {
    finish_.Abort(reason);
    aborted_.Set();
  }

 private:
  // To one peer: nothing, then a dial, then a connection.
  struct OutLink {
    absl::optional<Dial> dial;
    UniqueFd fd;
  };

  absl::Status Run(Exchange& exchange, Instant deadline) {
    while (!exchange.done()) {
      if (finish_.finished()) return finish_.reason();
      ASSIGN_OR_RETURN(const bool moved, Advance(exchange));
      if (moved || exchange.done()) continue;
      if (!deadline.is_infinite() && Now() >= deadline) {
        return PassedDeadline(exchange);
      }
      RETURN_IF_ERROR(Wait(exchange, deadline));
    }
    return absl::OkStatus();
  }

  // Whether anything moved.
  absl::StatusOr<bool> Advance(Exchange& exchange) {
    bool moved = false;
    if (!exchange.sent()) {
      ASSIGN_OR_RETURN(moved, AdvanceSending(exchange.to, *exchange.sending));
    }
    if (!exchange.received()) {
      ASSIGN_OR_RETURN(const bool received, AdvanceReceiving(exchange));
      moved = moved || received;
    }
    return moved;
  }

  absl::StatusOr<bool> AdvanceSending(Rank to, Sending& sending) {
    OutLink& link = outgoing_[to];
    if (!link.fd) {
      RETURN_IF_ERROR(AdvanceDial(to, link));
    }
    if (!link.fd) return false;
    absl::StatusOr<bool> moved = sending.Advance(link.fd.get());
    if (!moved.ok()) return PeerLost(spec_, to, moved.status().message());
    return moved;
  }

  absl::Status AdvanceDial(Rank to, OutLink& link) {
    if (!link.dial.has_value()) {
      ASSIGN_OR_RETURN(link.dial, BeginLink(spec_, to, LinkPurpose::kData, listener_),
                       LinkFailed(spec_, to, std::move(_)));
    }
    const absl::StatusOr<bool> proven = link.dial->Advance();
    if (!proven.ok()) return LinkFailed(spec_, to, proven.status());
    if (*proven) {
      link.fd = TakeLink(*link.dial, spec_, to, listener_);
      link.dial.reset();
    }
    return absl::OkStatus();
  }

  absl::Status PassedDeadline(const Exchange& exchange) const {
    const absl::Status passed = DeadlinePassed(spec_, exchange.to, exchange.sent(), exchange.from, exchange.received());
    if (exchange.sent() || !outgoing_[exchange.to].dial.has_value()) return passed;
    return absl::DeadlineExceededError(
        absl::StrCat(passed.message(), "; it was still connecting ", outgoing_[exchange.to].dial->Describe()));
  }

  absl::StatusOr<bool> AdvanceReceiving(Exchange& exchange) {
    UniqueFd& fd = incoming_[exchange.from];
    if (!fd) TakeArrivals();
    if (!fd) return false;
    absl::StatusOr<bool> moved = exchange.receiving->Advance(fd.get());
    if (!moved.ok()) return PeerLost(spec_, exchange.from, moved.status().message());
    if (const auto header = exchange.receiving->TakeHeader()) {
      RETURN_IF_ERROR(CheckHeader(exchange, *header));
    }
    return moved;
  }

  // A second link from the same rank has no use, and is closed.
  void TakeArrivals() {
    while (absl::optional<TcpInbox::Arrival> arrival = inbox_->Take()) {
      UniqueFd& fd = incoming_[arrival->from];
      if (!fd) fd = std::move(arrival->fd);
    }
  }

  absl::Status CheckHeader(const Exchange& exchange, absl::string_view bytes) const {
    const absl::optional<DataHeader> header = DecodeDataHeader(bytes);
    if (!header.has_value() || header->generation != spec_.generation || header->group != spec_.group) {
      return absl::InternalError(absl::StrCat(Describe(spec_, exchange.from),
                                              " sends what is no message of generation ", spec_.generation.value(),
                                              ", group ", spec_.group));
    }
    return CheckFrame(spec_, exchange.from, header->operation, header->length, exchange.operation, exchange.length_in);
  }

  // Until something can go on.
  absl::Status Wait(const Exchange& exchange, Instant deadline) {
    std::array<pollfd, 3> fds = {pollfd{aborted_.get(), POLLIN, 0}, pollfd{-1, 0, 0}, pollfd{-1, 0, 0}};
    if (!exchange.sent()) {
      const OutLink& link = outgoing_[exchange.to];
      // What a peer does with a link that it only receives from, other than taking bytes, is ending it.
      fds[1] = link.fd ? pollfd{link.fd.get(), POLLOUT | POLLRDHUP, 0} : pollfd{link.dial->fd(), POLLIN, 0};
    }
    if (!exchange.received()) {
      const UniqueFd& fd = incoming_[exchange.from];
      fds[2] = pollfd{fd ? fd.get() : inbox_->fd(), POLLIN, 0};
    }
    ::poll(fds.data(), fds.size(), PollTimeoutMs(deadline));
    const bool ended = (fds[1].revents & POLLRDHUP) != 0;
    if (ended) return PeerLost(spec_, exchange.to, "it closed the connection");
    return absl::OkStatus();
  }

  const GroupSpec spec_;
  TcpListener& listener_;
  const std::unique_ptr<TcpInbox> inbox_;
  const int owner_pid_;
  std::vector<OutLink> outgoing_;
  std::vector<UniqueFd> incoming_;
  FinishState finish_;
  WakeFd aborted_;
};

}  // namespace

std::unique_ptr<Transport> CreateTcpTransport(const GroupSpec& spec, TcpListener& listener) {
  return std::make_unique<TcpTransport>(spec, listener);
}

}  // namespace farandole
