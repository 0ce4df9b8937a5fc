#include "collectives/transport/shm/shm_transport.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "collectives/core/finish_state.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/shm/shm_slab.h"
#include "collectives/transport/shm/spin.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Moved in one direction before the other one gets its turn: the peer works on it meanwhile.
constexpr uint64_t kSliceBytes = 64 << 10;

struct FrameHeader {
  uint64_t operation;
  uint64_t length;
};

// One message on its way into a ring.
class Sending {
 public:
  Sending(SpscRingWriter& ring, uint64_t operation, absl::Span<const std::byte> bytes)
      : ring_(ring), operation_(operation), left_(bytes) {}

  bool done() const { return header_sent_ && left_.empty(); }

  // Whether anything moved.
  bool Advance() {
    uint64_t room = ring_.Writable();
    if (!header_sent_) {
      if (room < sizeof(FrameHeader)) return false;
      const FrameHeader header{operation_, left_.size()};
      ring_.Put(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&header), sizeof header));
      header_sent_ = true;
      room -= sizeof header;
    } else if (room == 0) {
      return false;
    }
    const uint64_t slice = std::min({room, kSliceBytes, uint64_t{left_.size()}});
    ring_.Put(left_.subspan(0, slice));
    left_.remove_prefix(slice);
    ring_.Publish();
    return true;
  }

 private:
  SpscRingWriter& ring_;
  const uint64_t operation_;
  absl::Span<const std::byte> left_;
  bool header_sent_ = false;
};

// One message on its way out of a ring.
class Receiving {
 public:
  Receiving(SpscRingReader& ring, const GroupSpec& spec, Rank from, uint64_t operation, absl::Span<std::byte> bytes)
      : ring_(ring), spec_(spec), from_(from), operation_(operation), left_(bytes) {}

  Rank from() const { return from_; }
  bool done() const { return header_received_ && left_.empty(); }

  absl::StatusOr<bool> Advance() {
    uint64_t there = ring_.Readable();
    if (!header_received_) {
      if (there < sizeof(FrameHeader)) return false;
      FrameHeader header;
      ring_.Take(absl::MakeSpan(reinterpret_cast<std::byte*>(&header), sizeof header));
      RETURN_IF_ERROR(CheckFrame(spec_, from_, header.operation, header.length, operation_, left_.size()));
      header_received_ = true;
      there -= sizeof header;
    } else if (there == 0) {
      return false;
    }
    const uint64_t slice = std::min({there, kSliceBytes, uint64_t{left_.size()}});
    ring_.Take(left_.subspan(0, slice));
    left_.remove_prefix(slice);
    ring_.Release();
    return true;
  }

 private:
  SpscRingReader& ring_;
  const GroupSpec& spec_;
  const Rank from_;
  const uint64_t operation_;
  absl::Span<std::byte> left_;
  bool header_received_ = false;
};

class ShmTransport : public Transport {
 public:
  ShmTransport(GroupSpec spec, std::unique_ptr<ShmSlab> slab)
      : spec_(std::move(spec)),
        slab_(std::move(slab)),
        spin_(spec_.size()),
        writers_(spec_.size()),
        readers_(spec_.size()),
        posted_(spec_.size()) {}

  Rank rank() const override { return spec_.rank; }
  int size() const override { return spec_.size(); }

  absl::Status Post(uint64_t operation, Rank to, absl::Span<const std::byte> bytes) override {
    RETURN_IF_ERROR(CheckPost(spec_, to, bytes));
    RETURN_IF_ERROR(finish_.CheckStart());
    if (bytes.empty()) return absl::OkStatus();
    if (posted_[to].empty()) busy_.push_back(to);
    posted_[to].emplace_back(WriterTo(to), operation, bytes);
    AdvanceSending();
    return absl::OkStatus();
  }

  absl::Status Receive(uint64_t operation, Rank from, absl::Span<std::byte> bytes, Instant deadline) override {
    RETURN_IF_ERROR(CheckReceive(spec_, from, bytes));
    RETURN_IF_ERROR(finish_.CheckStart());
    if (bytes.empty()) return absl::OkStatus();
    Receiving receiving(ReaderFrom(from), spec_, from, operation, bytes);
    const absl::Status status = Run(&receiving, deadline);
    return status.ok() ? status : finish_.Finish(status);
  }

  absl::Status Flush(Instant deadline) override {
    RETURN_IF_ERROR(finish_.CheckStart());
    const absl::Status status = Run(nullptr, deadline);
    return status.ok() ? status : finish_.Finish(status);
  }

  void Abort(absl::string_view reason) override {
    finish_.Abort(reason);
    slab_->members().Ring(spec_.rank);
  }

 private:
  bool Done(const Receiving* receiving) const { return receiving != nullptr ? receiving->done() : busy_.empty(); }

  // Until `receiving` is done, if there is one, else until nothing is posted any more.
  absl::Status Run(Receiving* receiving, Instant deadline) {
    while (!Done(receiving)) {
      ASSIGN_OR_RETURN(const bool moved, Advance(receiving));
      if (moved || Done(receiving)) continue;
      RETURN_IF_ERROR(Wait(receiving, deadline));
    }
    return absl::OkStatus();
  }

  // The first message for each receiver gets a turn. Whether anything moved.
  bool AdvanceSending() {
    bool moved = false;
    for (const Rank to : busy_) {
      if (!posted_[to].front().Advance()) continue;
      moved = true;
      slab_->members().Notify(to);
      if (posted_[to].front().done()) posted_[to].pop_front();
    }
    if (moved) {
      busy_.erase(std::remove_if(busy_.begin(), busy_.end(), [this](Rank to) { return posted_[to].empty(); }),
                  busy_.end());
    }
    return moved;
  }

  // Whether anything moved.
  absl::StatusOr<bool> Advance(Receiving* receiving) {
    if (finish_.finished()) return finish_.reason();
    bool moved = AdvanceSending();
    if (receiving != nullptr && !receiving->done()) {
      ASSIGN_OR_RETURN(const bool received, receiving->Advance());
      if (received) {
        slab_->members().Notify(receiving->from());
        moved = true;
      }
    }
    return moved;
  }

  // Returns once something moved, or is worth another look.
  absl::Status Wait(Receiving* receiving, Instant deadline) {
    bool moved = false;
    absl::Status status;
    const bool soon = spin_.Until([&] {
      const absl::StatusOr<bool> advanced = Advance(receiving);
      status = advanced.status();
      return !advanced.ok() || *advanced;
    });
    if (soon) return status;
    slab_->members().Sleep(deadline, [&] {
      const absl::StatusOr<bool> looked = LookOnceMore(receiving);
      status = looked.status();
      moved = looked.ok() && *looked;
      return moved || !status.ok();
    });
    RETURN_IF_ERROR(status);
    if (moved || deadline.is_infinite() || Now() < deadline) return absl::OkStatus();
    ASSIGN_OR_RETURN(moved, Advance(receiving));
    if (moved) return absl::OkStatus();
    return DeadlinePassed(spec_, busy_, receiving != nullptr ? absl::optional<Rank>(receiving->from()) : absl::nullopt);
  }

  // What a peer wrote before it left is still received: so first whether it has left, then whether something is there.
  absl::StatusOr<bool> LookOnceMore(Receiving* receiving) {
    absl::optional<Rank> left;
    for (const Rank to : busy_) {
      if (slab_->members().HasLeft(to)) left = to;
    }
    if (receiving != nullptr && slab_->members().HasLeft(receiving->from())) left = receiving->from();
    ASSIGN_OR_RETURN(const bool moved, Advance(receiving));
    if (moved) return true;
    if (left.has_value()) return PeerLost(spec_, *left, "it has left the group");
    return false;
  }

  SpscRingWriter& WriterTo(Rank to) {
    if (!writers_[to].has_value()) writers_[to] = slab_->WriterTo(to);
    return *writers_[to];
  }
  SpscRingReader& ReaderFrom(Rank from) {
    if (!readers_[from].has_value()) readers_[from] = slab_->ReaderFrom(from);
    return *readers_[from];
  }

  const GroupSpec spec_;
  const std::unique_ptr<ShmSlab> slab_;
  const Spin spin_;
  std::vector<absl::optional<SpscRingWriter>> writers_;
  std::vector<absl::optional<SpscRingReader>> readers_;
  std::vector<std::deque<Sending>> posted_;  // to each rank
  std::vector<Rank> busy_;                   // those to whom something is posted
  FinishState finish_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> CreateShmTransport(const GroupSpec& spec, SlabSource& source,
                                                              Instant deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<ShmSlab> slab, ShmSlab::Open(spec, source, deadline));
  return std::make_unique<ShmTransport>(spec, std::move(slab));
}

}  // namespace farandole
