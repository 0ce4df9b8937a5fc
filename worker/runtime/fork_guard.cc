#include "worker/runtime/fork_guard.h"

#include <pthread.h>

#include <atomic>
#include <cstring>

#include "tools/base/check.h"

namespace farandole {
namespace {

std::atomic<bool> in_forked_child = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void WatchForks() {
  static const int error = ::pthread_atfork(nullptr, nullptr, [] { in_forked_child.store(true); });
  CHECK(error == 0) << "pthread_atfork: " << std::strerror(error);
}

bool InForkedChild() { return in_forked_child.load(std::memory_order_relaxed); }

}  // namespace farandole
