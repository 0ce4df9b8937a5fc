#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "tools/base/ids.h"
#include "tools/base/mutex.h"

namespace farandole {

// At which of its endpoints each peer was last proven to be, for all groups and generations of a process. A peer is a
// start of a worker, which keeps its listener for life.
//
// Thread-safe.
class ProvenEndpoints {
 public:
  void Remember(Incarnation peer, std::string endpoint) {
    MutexLock lock(&mutex_);
    if (endpoints_.size() >= kPeersMax) endpoints_.clear();  // they are only where to begin
    endpoints_[peer] = std::move(endpoint);
  }

  // Empty if there is none.
  std::string Of(Incarnation peer) const {
    MutexLock lock(&mutex_);
    const auto found = endpoints_.find(peer);
    return found == endpoints_.end() ? "" : found->second;
  }

 private:
  static constexpr size_t kPeersMax = 1 << 16;
  mutable Mutex mutex_;
  std::map<Incarnation, std::string> endpoints_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
