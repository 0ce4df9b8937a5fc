#include "launcher/exec/file_limit.h"

#include <sys/resource.h>

namespace farandole {
namespace {

rlimit g_original = {};  // written before there is any other thread
bool g_raised = false;

}  // namespace

void RaiseFileLimit() {
  if (::getrlimit(RLIMIT_NOFILE, &g_original) != 0) return;
  rlimit raised = g_original;
  raised.rlim_cur = raised.rlim_max;
  g_raised = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
}

void GiveOriginalFileLimit(pid_t child) {
  if (g_raised) ::prlimit(child, RLIMIT_NOFILE, &g_original, nullptr);
}

}  // namespace farandole
