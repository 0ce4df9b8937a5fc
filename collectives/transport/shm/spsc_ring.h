#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"

namespace farandole {

// A byte ring between one writer and one reader, in processes that share the memory. Positions count all bytes ever
// written and read, so they never wrap in practice; what one side has published the other sees whole (release and
// acquire). They are also sequentially consistent, because a side that finds nothing to do announces that it will sleep
// and then looks once more (shm_slab.h).
//
// A side trusts the other for the content, not for memory safety: a damaged position never leads outside of the ring.
struct SpscRingControl {
  alignas(64) std::atomic<uint64_t> written{0};
  alignas(64) std::atomic<uint64_t> read{0};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "the control block is shared between processes");

// `capacity` is a power of two. The memory must outlive both ends; each end belongs to one thread at a time.
class SpscRingWriter {
 public:
  SpscRingWriter(SpscRingControl* control, std::byte* data, uint64_t capacity)
      : control_(control), data_(data), capacity_(capacity), written_(control->written.load()) {}

  uint64_t Writable() const { return capacity_ - std::min(capacity_, written_ - control_->read.load()); }

  // Copies; at most Writable(). The reader does not see it before Publish.
  void Put(absl::Span<const std::byte> bytes) {
    const uint64_t at = written_ & (capacity_ - 1);
    const uint64_t first = std::min<uint64_t>(bytes.size(), capacity_ - at);
    if (first > 0) std::memcpy(data_ + at, bytes.data(), first);
    if (first < bytes.size()) std::memcpy(data_, bytes.data() + first, bytes.size() - first);
    written_ += bytes.size();
  }

  void Publish() { control_->written.store(written_); }

 private:
  SpscRingControl* control_;
  std::byte* data_;
  uint64_t capacity_;
  uint64_t written_;  // published or not
};

class SpscRingReader {
 public:
  SpscRingReader(SpscRingControl* control, const std::byte* data, uint64_t capacity)
      : control_(control), data_(data), capacity_(capacity), read_(control->read.load()) {}

  uint64_t Readable() const { return std::min(capacity_, control_->written.load() - read_); }

  // Copies; at most Readable(). The writer gets the room with Release.
  void Take(absl::Span<std::byte> bytes) {
    const uint64_t at = read_ & (capacity_ - 1);
    const uint64_t first = std::min<uint64_t>(bytes.size(), capacity_ - at);
    if (first > 0) std::memcpy(bytes.data(), data_ + at, first);
    if (first < bytes.size()) std::memcpy(bytes.data() + first, data_, bytes.size() - first);
    read_ += bytes.size();
  }

  void Release() { control_->read.store(read_); }

 private:
  SpscRingControl* control_;
  const std::byte* data_;
  uint64_t capacity_;
  uint64_t read_;  // released or not
};

}  // namespace farandole
