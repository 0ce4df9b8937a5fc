#pragma once

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace farandole {

// The last lines of a stream, as a terminal would show them: what a '\r' was followed by has replaced what was before
// it. Bounded: kLines lines of kLineBytes bytes. Thread-compatible.
class LineTail {
 public:
  static constexpr size_t kLines = 20;
  static constexpr size_t kLineBytes = 1000;

  void Append(absl::string_view data);
  // Oldest first; an unfinished last line too. Without terminators; blank lines at the end are left out.
  std::vector<std::string> Lines() const;

 private:
  void EndLine();

  std::deque<std::string> lines_;
  std::string line_;
  bool return_pending_ = false;  // a '\r' came: the next byte, unless it is '\n', begins the line again
};

}  // namespace farandole
