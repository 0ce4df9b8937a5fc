#include "worker/agent/oom_watch.h"

#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace farandole {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// -1: the file has no such line.
int64_t CountIn(const std::string& path) {
  const std::string text = ReadFile(path);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    int64_t count = 0;
    if (absl::ConsumePrefix(&line, "oom_kill ") && absl::SimpleAtoi(line, &count)) return count;
  }
  return -1;
}

// The memory.events of this process's group. /proc/self/cgroup has "0::PATH" for it.
std::string GroupFile(const std::string& root) {
  const std::string groups = ReadFile(absl::StrCat(root, "/proc/self/cgroup"));
  for (absl::string_view line : absl::StrSplit(groups, '\n')) {
    if (absl::ConsumePrefix(&line, "0::")) return absl::StrCat(root, "/sys/fs/cgroup", line, "/memory.events");
  }
  return "";
}

}  // namespace

OomWatch::OomWatch(const std::string& root) {
  for (const std::string& path : {GroupFile(root), absl::StrCat(root, "/proc/vmstat")}) {
    const int64_t count = path.empty() ? -1 : CountIn(path);
    if (count < 0) continue;
    path_ = path;
    seen_ = count;
    return;
  }
}

bool OomWatch::Claim() {
  if (path_.empty() || CountIn(path_) <= seen_) return false;
  ++seen_;
  return true;
}

}  // namespace farandole
