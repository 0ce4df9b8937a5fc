#pragma once

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace farandole {

// A piece of somebody's input, as it may stand in a message: in quotes, without control bytes, not endless.
inline std::string Quote(absl::string_view text) {
  constexpr size_t kShown = 80;
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(text.substr(0, kShown)), text.size() > kShown ? "..." : "", "\"");
}

}  // namespace farandole
