#pragma once

#include <map>
#include <string>

#include "collectives/transport/slab_source.h"
#include "tools/base/mutex.h"

namespace farandole {

// Common memory for members that are threads of one process: a table of memfds. The memory of a name lives as long as
// this and what was mapped from it.
class LocalSlabSource : public SlabSource {
 public:
  absl::StatusOr<UniqueFd> Open(absl::string_view name, int64_t bytes, Instant deadline) override;

 private:
  struct Slab {
    UniqueFd fd;
    int64_t bytes;
  };

  Mutex mutex_;
  std::map<std::string, Slab> slabs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
