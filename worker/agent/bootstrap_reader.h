#pragma once

#include "absl/status/statusor.h"
#include "tools/base/instant.h"
#include "worker/agent/core/bootstrap.h"

namespace farandole {

// Reads what the starter of an agent writes to its standard input (proto/v1/bootstrap.proto), and not a byte more.
// Blocks. Errors: Unavailable: `fd` ended or failed; DeadlineExceeded; InvalidArgument: too long, or not a sound
// message. No error contains the key.
absl::StatusOr<Bootstrap> ReadBootstrap(int fd, Instant deadline);

}  // namespace farandole
