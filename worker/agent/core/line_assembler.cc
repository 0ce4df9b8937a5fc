#include "worker/agent/core/line_assembler.h"

#include <algorithm>

namespace farandole {
namespace {

// A prompt or a progress bar that ends in no terminator is shown after this.
constexpr absl::Duration kHold = absl::Milliseconds(500);

// A '\r' at the end may be half of a "\r\n"; the other half is a system call away.
constexpr absl::Duration kHoldReturn = absl::Milliseconds(20);

bool IsTerminator(char byte) { return byte == '\n' || byte == '\r'; }

}  // namespace

void LineAssembler::Append(absl::string_view bytes, Instant now) {
  if (bytes.empty()) return;
  if (cut_ == Cut::kLines) {
    const bool continues = size() > 0 && !IsTerminator(bytes_.back());
    if (!continues || std::any_of(bytes.begin(), bytes.end(), IsTerminator)) since_ = now;
  }
  bytes_.erase(0, taken_);
  taken_ = 0;
  bytes_.append(bytes.data(), bytes.size());
}

std::string LineAssembler::Take(size_t limit, Instant now) {
  size_t end = cut_ == Cut::kAnywhere ? taken_ + std::min(limit, size()) : taken_;
  while (const size_t next = PieceEnd(end, now)) {
    if (next - taken_ > limit) break;
    end = next;
  }
  std::string pieces = bytes_.substr(taken_, end - taken_);
  taken_ = end;
  return pieces;
}

Instant LineAssembler::FlushAt() const {
  if (size() == 0 || cut_ == Cut::kAnywhere) return Instant::Infinite();
  return since_ + (bytes_.back() == '\r' ? kHoldReturn : kHold);
}

size_t LineAssembler::PieceEnd(size_t begin, Instant now) const {
  if (begin == bytes_.size()) return 0;
  if (cut_ == Cut::kAnywhere) return begin + 1;
  const size_t limit = std::min(bytes_.size(), begin + max_piece_);
  const size_t terminator = bytes_.find_first_of("\n\r", begin);
  if (terminator != std::string::npos && terminator < limit) {
    if (bytes_[terminator] == '\n') return terminator + 1;
    if (terminator + 1 < bytes_.size()) {
      const bool pair = bytes_[terminator + 1] == '\n' && terminator + 2 <= begin + max_piece_;
      return terminator + (pair ? 2 : 1);
    }
  } else if (limit == begin + max_piece_) {
    return limit;
  }
  return finished_ || now >= FlushAt() ? bytes_.size() : 0;
}

}  // namespace farandole
