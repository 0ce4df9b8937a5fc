#pragma once

#include <memory>

#include "launcher/ssh/remote_shell.h"

namespace farandole {

// ssh in this process, by libssh: one connection for a host, one thread of the caller's for each, no child (unless the
// user's configuration has ProxyCommand or ProxyJump: then what they name is run, without a terminal). The only place
// that knows libssh. README.md lists the directives of ssh_config that count.
//
// Keys are tried in this order: the target's identity file, certificates beside keys ("KEY-cert.pub"), the ssh agent,
// the configured or default identity files; after them GSSAPI.
std::unique_ptr<RemoteConnector> MakeLibsshConnector(SshFiles files);

}  // namespace farandole
