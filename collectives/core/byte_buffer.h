#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace farandole {

// Memory for a result: owned, of fixed size, not cleared when made (a vector would write every page once for nothing).
// Movable.
class ByteBuffer {
 public:
  ByteBuffer() = default;

  // nullopt when there is no memory for so much.
  static absl::optional<ByteBuffer> Make(int64_t bytes) {
    ByteBuffer buffer;
    buffer.data_.reset(new (std::nothrow) std::byte[bytes]);
    if (buffer.data_ == nullptr) return absl::nullopt;
    buffer.size_ = bytes;
    return buffer;
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  absl::Span<std::byte> span() { return {data_.get(), static_cast<size_t>(size_)}; }
  absl::Span<const std::byte> span() const { return {data_.get(), static_cast<size_t>(size_)}; }

 private:
  std::unique_ptr<std::byte[]> data_;
  int64_t size_ = 0;
};

}  // namespace farandole
