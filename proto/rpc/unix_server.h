#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "tools/base/instant.h"

namespace farandole {

// A gRPC server on an abstract unix socket (it has no file, so nothing of it can be left behind) that takes connections
// of this process's own user, or root, only: the socket is ours, each accepted connection is asked for its peer
// credentials before gRPC sees a byte of it, and refused ones are counted. Whoever is let in is trusted as this user
// is.
//
// Services use the callback API; their reactors finish when they are cancelled (otherwise Shutdown waits for ever).
class UnixServer {
 public:
  // Whether a peer of this user is let in. Called on the server's own thread.
  using PeerCheck = std::function<bool(uid_t)>;

  // Opens a socket with a random name and serves `services` (borrowed, they outlive the server) on it.
  // Errors: Unavailable with the system's reason.
  static absl::StatusOr<std::unique_ptr<UnixServer>> Start(std::vector<grpc::Service*> services);
  // The same with another rule for who is let in.
  static absl::StatusOr<std::unique_ptr<UnixServer>> Start(std::vector<grpc::Service*> services, PeerCheck let_in);

  virtual ~UnixServer() = default;  // as Shutdown at once

  // What clients dial: "unix-abstract:NAME".
  virtual std::string address() const = 0;

  // Connections refused for their user.
  virtual int64_t refused() const = 0;

  // Takes no new connections, lets calls end until `deadline`, then cancels them. Blocks. Idempotent.
  virtual void Shutdown(Instant deadline) = 0;
};

// Connects to an address of a UnixServer, and makes sure that it belongs to this user or root before anything is sent.
// The channel is this one connection: once it is lost, every call on it fails with UNAVAILABLE; nothing is dialled
// again. Errors: Unavailable: nobody listens there (the message names the address and the errno); PermissionDenied:
// another user does; InvalidArgument: not an address of this kind.
absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectUnix(const std::string& address);

}  // namespace farandole
