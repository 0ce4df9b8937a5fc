#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace farandole::fuzz {

// Takes an input apart from its beginning; where it is at its end, everything is zero and empty.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  uint8_t Byte() {
    const std::string byte = Bytes(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }

  // As many as there are, at most `most`.
  std::string Bytes(size_t most) {
    const size_t length = std::min(most, left_.size());
    std::string bytes(left_.substr(0, length));
    left_.remove_prefix(length);
    return bytes;
  }

  std::string Rest() { return Bytes(left_.size()); }

 private:
  absl::string_view left_;
};

}  // namespace farandole::fuzz
