#pragma once

#include <vector>

#include "absl/status/status.h"
#include "collectives/engine/pending_table.h"
#include "collectives/engine/wire.h"

namespace farandole {

// One operation of the sequence with this rank's memory: `requests[i]` belongs to `response.names[i]`.
struct Operation {
  Response response;
  std::vector<Pending> requests;
  absl::Status error;   // not OK: it does not run, its requests fail with this
  bool joined = false;  // this rank has not asked: `requests` have no memory and nobody to tell
};

}  // namespace farandole
