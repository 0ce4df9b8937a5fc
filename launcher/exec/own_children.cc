#include "launcher/exec/own_children.h"

#include <set>

#include "absl/base/thread_annotations.h"
#include "tools/base/mutex.h"

namespace farandole {
namespace {

struct Registry {
  Mutex mutex;
  std::set<pid_t> children ABSL_GUARDED_BY(mutex);
};

// Never destroyed: threads may end children until the process is gone.
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

}  // namespace

pid_t OwnChildren::Start(const std::function<pid_t()>& fork) {
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  const pid_t child = fork();
  if (child > 0) registry.children.insert(child);
  return child;
}

void OwnChildren::Collected(pid_t pid) {
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  registry.children.erase(pid);
}

bool OwnChildren::Has(pid_t pid) {
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  return registry.children.count(pid) > 0;
}

}  // namespace farandole
