#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/ssh/remote_shell.h"

namespace farandole::testing {

struct FakeHost {
  std::string login_shell = "/bin/sh";
  std::vector<std::string> environment;  // all of it
};

// Every host is this machine, as this user, at once: commands run as children, by the login shell, in the environment
// given. What it does not have: steps that take time, and failures of a network; a host named "unknown" is refused for
// good, one named "away" for now. RemoteTarget::connect is asked, for 192.0.2.1 port 22, and its stream is kept open.
std::unique_ptr<RemoteConnector> MakeFakeConnector(FakeHost host);

}  // namespace farandole::testing
