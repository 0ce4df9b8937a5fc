#pragma once

#include <memory>

#include "launcher/ssh/remote_shell.h"

namespace farandole {

// ssh by the system's `ssh`: everything in the user's configuration counts, as when that person types `ssh HOST`. For a
// connection one `ssh` runs as a master with a control socket in a folder of its own, and each process is one more
// `ssh` through it. Never through a master of the user's, which would outlive us.
//
// What differs from libssh: a process that a signal has ended is told as exit code 255, which is all that ssh tells,
// and RemoteTarget::connect is not asked. Connect's errors also: NotFound: there is no `ssh` here.
std::unique_ptr<RemoteConnector> MakeOpensshConnector(SshFiles files);

}  // namespace farandole
