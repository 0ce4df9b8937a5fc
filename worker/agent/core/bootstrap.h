#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/base/ids.h"

namespace farandole {

// What an agent is told at its start (proto/v1/bootstrap.proto has the meaning of each).
struct Bootstrap {
  std::string job;
  std::string host;
  Incarnation incarnation;
  std::vector<std::string> driver_addresses;  // at least one; "unix-abstract:NAME" or "ADDRESS:PORT"
  std::string job_key;                        // secret
  std::string data_address;                   // workers bind their data listeners to it, unless a spawn says otherwise
  absl::Duration grace;                       // between TERM and KILL when the driver is gone
  absl::Duration lost_after = absl::InfiniteDuration();  // nothing acknowledged: the driver is gone
  bool input_may_end = false;                            // without meaning that the starter is gone

  // PEM. All are there if any address is not of a unix socket.
  std::string ca_certificate;
  std::string certificate;
  std::string private_key;  // secret
};

}  // namespace farandole
