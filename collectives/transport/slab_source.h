#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Where the members of a group on one host get their common memory from: in a worker, its agent (which passes a memfd
// over its unix socket, so nothing has a name and nothing can be left behind); in tests, a table in the process.
//
// Thread-safe.
class SlabSource {
 public:
  virtual ~SlabSource() = default;

  // A descriptor of the memory `name`, `bytes` long, zero-filled when it is made. The first caller's request makes it;
  // all callers of one name must ask for the same size (kInvalidArgument otherwise) and get the same memory. The name
  // contains the generation. Blocks until there is an answer or `deadline` passes.
  virtual absl::StatusOr<UniqueFd> Open(absl::string_view name, int64_t bytes, Instant deadline) = 0;
};

}  // namespace farandole
