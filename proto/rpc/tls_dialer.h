#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/tls_identity.h"
#include "tools/base/instant.h"

namespace farandole {

struct DialOptions {
  TlsIdentity identity;
  std::string server_name;  // proto/rpc/tls_names.h
  // The connection is broken when the other machine has not acknowledged for so long what was sent. A process there
  // that is only stopped breaks nothing, which pings of gRPC or of ours would not know.
  absl::Duration lost_after = absl::InfiniteDuration();
};

struct Dialled {
  std::shared_ptr<grpc::Channel> channel;  // connected
  std::string address;                     // the one that it is connected to
};

// Connects to the first of `addresses` that proves to be the server of that name of the identity's authority, to which
// the identity is proved at the same time. An address is "ADDRESS:PORT", numeric, for a TlsServer, or
// "unix-abstract:NAME", for a UnixServer. They are tried in their order; when one has failed, or not answered for 300
// ms, the next is tried as well, and each is tried again and again until `deadline`, because what fails now may work in
// a moment.
//
// Blocks. The environment (proxies, resolvers) has no say. Errors: InvalidArgument: an address of another kind;
// Unavailable: nobody has proved itself in time, with each address and its reason.
absl::StatusOr<Dialled> DialFirst(const std::vector<std::string>& addresses, const DialOptions& options,
                                  Instant deadline);

}  // namespace farandole
