#include "worker/agent/children.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "tools/base/unique_fd.h"

namespace farandole {
namespace {

bool HasChildren() {
  siginfo_t info;
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// The parent of `pid`, or -1. /proc/PID/stat is "PID (NAME) STATE PARENT ...", and NAME may contain anything.
pid_t ParentOf(const std::string& pid) {
  const UniqueFd file(::open(("/proc/" + pid + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return -1;
  text[size] = '\0';
  const char* after_name = std::strrchr(text, ')');
  int parent;
  return after_name != nullptr && std::sscanf(after_name + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

}  // namespace

std::vector<pid_t> ChildrenOfThisProcess() {
  std::vector<pid_t> children;
  if (!HasChildren()) return children;  // the usual case, without reading all of /proc
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) return children;
  while (const dirent* entry = ::readdir(folder)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) && ParentOf(entry->d_name) == ::getpid()) {
      children.push_back(static_cast<pid_t>(std::stol(entry->d_name)));
    }
  }
  ::closedir(folder);
  return children;
}

}  // namespace farandole
