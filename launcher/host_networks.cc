#include "launcher/host_networks.h"

#include "launcher/plan/network_choice.h"
#include "tools/base/status_macros.h"

namespace farandole {

absl::Status HostNetworks::Admit(const std::string& host, const std::vector<OfferedAddress>& offered) {
  if (loopback_only_) return absl::OkStatus();
  ASSIGN_OR_RETURN(chosen_[host], ChooseAddresses(choice_, host, offered));
  return absl::OkStatus();
}

std::vector<std::string> HostNetworks::AddressesOf(const std::string& host) const {
  std::vector<std::string> addresses;
  const auto it = chosen_.find(host);
  if (it == chosen_.end()) return addresses;
  for (const OfferedAddress& address : it->second) addresses.push_back(address.address);
  return addresses;
}

std::vector<std::string> HostNetworks::InterfacesOf(const std::string& host) const {
  const auto it = chosen_.find(host);
  return it == chosen_.end() ? std::vector<std::string>() : farandole::InterfacesOf(it->second);
}

}  // namespace farandole
