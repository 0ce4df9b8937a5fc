#pragma once

#include <pthread.h>

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/transport/slab_source.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Common memory for processes that are forked from one: make it before, use it after, in any of them. The first who
// asks for a name takes one of a fixed number of nameless files, which all have inherited.
class ForkedSlabSource : public SlabSource {
 public:
  static absl::StatusOr<std::unique_ptr<ForkedSlabSource>> Create();
  ~ForkedSlabSource() override;

  // ResourceExhausted when more names are asked for than there are files.
  absl::StatusOr<UniqueFd> Open(absl::string_view name, int64_t bytes, Instant deadline) override;

 private:
  static constexpr int kFiles = 16;
  static constexpr int kNameMax = 255;
  struct Entry {
    char name[kNameMax + 1];
    int64_t bytes;
  };
  struct Table {
    pthread_mutex_t mutex;
    int used;
    Entry entries[kFiles];
  };

  ForkedSlabSource() = default;
  absl::StatusOr<int> FindLocked(absl::string_view name, int64_t bytes);

  UniqueFd files_[kFiles];
  Table* table_ = nullptr;
};

}  // namespace farandole
