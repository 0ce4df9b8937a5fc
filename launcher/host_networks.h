#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "driver/core/ids.h"
#include "launcher/cli/networks.h"

namespace farandole {

// What workers listen on at each host of a job: chosen when the host's agent says what it has. On the driver's loop.
class HostNetworks {
 public:
  // `loopback_only`: the whole job is on this machine, and nobody asked for a network: nothing needs choosing.
  HostNetworks(NetworkChoice choice, bool loopback_only) : choice_(std::move(choice)), loopback_only_(loopback_only) {}

  // Errors: those of ChooseAddresses.
  absl::Status Admit(const std::string& host, const std::vector<OfferedAddress>& offered);

  // For a worker of an admitted host; empty: where its agent was told at its start.
  std::vector<std::string> AddressesOf(const std::string& host) const;
  std::vector<std::string> InterfacesOf(const std::string& host) const;
  bool were_asked_for() const { return !choice_.empty(); }

 private:
  const NetworkChoice choice_;
  const bool loopback_only_;
  std::map<std::string, std::vector<OfferedAddress>> chosen_;
};

}  // namespace farandole
