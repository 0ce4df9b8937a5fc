#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "collectives/transport/control_channel.h"
#include "collectives/transport/shm/spsc_ring.h"

namespace farandole {

// Messages both ways between rank 0 and another rank of a group on one host, through two byte rings in common memory:
// four bytes of length, then the message, in as many pieces as there is room for.
//
// Thread safety: HasIncoming, CanFlush and the flags may be used from any thread, the rest belongs to one at a time.
class MessageLink {
 public:
  static constexpr int64_t kBytes = 2 * (256 + (64 << 10));  // of memory for one link

  MessageLink(std::byte* memory, bool is_rank_0)
      : out_control_(Control(memory, is_rank_0)),
        in_control_(Control(memory, !is_rank_0)),
        writer_(out_control_, Data(memory, is_rank_0), kRingBytes),
        reader_(in_control_, Data(memory, !is_rank_0), kRingBytes) {}

  // A message of the other side, or a part of one, waits.
  bool HasIncoming() const { return in_control_->written.load() != in_control_->read.load(); }
  // What is queued here could move on.
  bool CanFlush() const {
    return queued_.load() && out_control_->written.load() - out_control_->read.load() < kRingBytes;
  }

  bool has_queued() const { return queued_.load(); }

  void Queue(absl::string_view message) {
    const auto length = static_cast<uint32_t>(message.size());
    std::string framed(reinterpret_cast<const char*>(&length), sizeof length);
    framed.append(message.data(), message.size());
    outgoing_.push_back(std::move(framed));
    queued_.store(true);
  }

  // Writes what there is room for; whether anything: then the other side is to be notified.
  bool Flush() {
    bool moved = false;
    while (!outgoing_.empty()) {
      const std::string& message = outgoing_.front();
      const uint64_t slice = std::min<uint64_t>(writer_.Writable(), message.size() - sent_);
      if (slice == 0) break;
      writer_.Put(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(message.data()) + sent_, slice));
      sent_ += slice;
      moved = true;
      if (sent_ < message.size()) continue;
      outgoing_.pop_front();
      sent_ = 0;
    }
    if (moved) writer_.Publish();
    queued_.store(!outgoing_.empty());
    return moved;
  }

  // Reads what has come; a message when one is whole. `moved`: something was read, and the other side is to be notified
  // that there is room. kInvalidArgument: it is no message.
  absl::StatusOr<absl::optional<std::string>> Take(bool* moved) {
    while (true) {
      const uint64_t there = reader_.Readable();
      if (!length_.has_value()) {
        if (there < sizeof(uint32_t)) return absl::optional<std::string>();
        uint32_t length = 0;
        reader_.Take(absl::MakeSpan(reinterpret_cast<std::byte*>(&length), sizeof length));
        if (length > ControlChannel::kMessageBytesMax) return absl::InvalidArgumentError("it sent what is no message");
        length_ = length;
        incoming_.clear();
      } else {
        const uint64_t slice = std::min<uint64_t>(there, *length_ - incoming_.size());
        if (slice == 0 && incoming_.size() < *length_) return absl::optional<std::string>();
        const size_t at = incoming_.size();
        incoming_.resize(at + slice);
        reader_.Take(absl::MakeSpan(reinterpret_cast<std::byte*>(&incoming_[at]), slice));
      }
      reader_.Release();
      *moved = true;
      if (incoming_.size() < *length_) continue;
      length_.reset();
      return absl::optional<std::string>(std::move(incoming_));
    }
  }

  std::atomic<bool> gone{false};      // the other side has died, or has left
  std::atomic<bool> reported{false};  // and that has been said

 private:
  static constexpr int64_t kControlBytes = 256;
  static constexpr uint64_t kRingBytes = 64 << 10;  // a power of two
  static_assert(sizeof(SpscRingControl) <= kControlBytes);

  // The first half of the memory is what rank 0 writes.
  static std::byte* Half(std::byte* memory, bool from_rank_0) { return memory + (from_rank_0 ? 0 : kBytes / 2); }
  static SpscRingControl* Control(std::byte* memory, bool from_rank_0) {
    return reinterpret_cast<SpscRingControl*>(Half(memory, from_rank_0));
  }
  static std::byte* Data(std::byte* memory, bool from_rank_0) { return Half(memory, from_rank_0) + kControlBytes; }

  SpscRingControl* const out_control_;
  SpscRingControl* const in_control_;
  SpscRingWriter writer_;
  SpscRingReader reader_;
  std::deque<std::string> outgoing_;  // with their lengths
  std::atomic<bool> queued_{false};   // it is not empty
  size_t sent_ = 0;                   // of the first
  absl::optional<uint32_t> length_;   // of the message that comes
  std::string incoming_;
};

}  // namespace farandole
