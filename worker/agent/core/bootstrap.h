#pragma once

#include <string>

#include "absl/time/time.h"
#include "tools/base/ids.h"

namespace farandole {

// What an agent is told at its start.
struct Bootstrap {
  std::string job;
  std::string host;
  Incarnation incarnation;
  std::string driver_address;  // a gRPC target
  std::string job_key;         // secret
  std::string data_address;    // workers bind their data listeners to it
  absl::Duration grace;        // between TERM and KILL when the driver is gone
};

}  // namespace farandole
