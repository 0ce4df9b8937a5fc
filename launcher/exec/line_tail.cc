#include "launcher/exec/line_tail.h"

#include <utility>

namespace farandole {

void LineTail::EndLine() {
  lines_.push_back(std::move(line_));
  line_.clear();
  if (lines_.size() > kLines) lines_.pop_front();
}

void LineTail::Append(absl::string_view data) {
  for (const char c : data) {
    if (c == '\n') {
      EndLine();
      return_pending_ = false;
    } else if (c == '\r') {
      return_pending_ = true;
    } else {
      if (std::exchange(return_pending_, false)) line_.clear();
      if (line_.size() < kLineBytes) line_ += c;
    }
  }
}

std::vector<std::string> LineTail::Lines() const {
  std::vector<std::string> lines(lines_.begin(), lines_.end());
  if (!line_.empty()) lines.push_back(line_);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() > kLines) lines.erase(lines.begin());
  return lines;
}

}  // namespace farandole
