#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Unix sockets with a name in the kernel's abstract space: no file, so none is left behind. The kernel gives such a
// name to whoever asks first, whatever user that is, so both ends ask who the other one is before they say a word.
//
// `type` is SOCK_STREAM or SOCK_SEQPACKET. A name is written without the zero byte that it begins with.

struct AbstractListener {
  UniqueFd fd;       // non-blocking, listening
  std::string name;  // "farandole-" and 32 random hex digits
};
// Errors: those of the system.
absl::StatusOr<AbstractListener> ListenAbstract(int type);

// Blocks until the listener has room, or `deadline` passes.
// Errors: Unavailable: nobody listens there, or nobody accepts; InvalidArgument: no such name can be.
absl::StatusOr<UniqueFd> ConnectAbstract(int type, const std::string& name, Instant deadline);

// The user of the process at the other end: of the one that connected; for a connecting socket, of the one that
// listens.
absl::StatusOr<uid_t> PeerUser(int fd);

// Whether a peer of this user may talk to this process: its own user, or root.
bool IsThisUserOrRoot(uid_t peer);

// PermissionDenied, with both users, unless the peer of `fd` is this user or root.
absl::Status CheckPeer(int fd);

}  // namespace farandole
