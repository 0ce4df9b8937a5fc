#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/base/instant.h"

namespace farandole {

// Cuts one stream of bytes into pieces that are passed on whole: lines with their terminator, which is "\n", "\r" or
// "\r\n". What has no terminator is a piece once it is `max_piece` long, has waited for half a second, or is the
// stream's last. No byte is lost, added or moved. A stream that nobody reads as lines is cut anywhere, and nothing of
// it waits.
//
// Thread-compatible.
class LineAssembler {
 public:
  static constexpr size_t kMaxPiece = 64 << 10;

  enum class Cut { kLines, kAnywhere };

  // `max_piece`: 1 to kMaxPiece.
  explicit LineAssembler(size_t max_piece, Cut cut = Cut::kLines) : max_piece_(max_piece), cut_(cut) {}

  // Adds what was read at `now`.
  void Append(absl::string_view bytes, Instant now);

  // The stream is at its end.
  void Finish() { finished_ = true; }

  // Removes and returns as many whole pieces as fit into `limit` bytes together; nothing if not even the first one
  // does.
  std::string Take(size_t limit, Instant now);

  // Bytes held.
  size_t size() const { return bytes_.size() - taken_; }

  // Whether Take would return something at `now`, given the room.
  bool HasPiece(Instant now) const { return PieceEnd(taken_, now) != 0; }

  // When what is held without a terminator becomes a piece; Infinite if nothing waits for that.
  Instant FlushAt() const;

 private:
  // Where the piece that begins at `begin` ends, 0 if it does not yet.
  size_t PieceEnd(size_t begin, Instant now) const;

  const size_t max_piece_;
  const Cut cut_;
  std::string bytes_;
  size_t taken_ = 0;  // of bytes_
  Instant since_;     // when the first byte after the last terminator came
  bool finished_ = false;
};

}  // namespace farandole
