#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/rpc/tls_identity.h"
#include "tools/base/instant.h"

namespace farandole {

struct TlsServerOptions {
  TlsIdentity identity;

  // Ports to listen on, both included; 0 to 0: any that the system gives.
  int first_port = 0, last_port = 0;

  // Connections that have not proved themselves yet; one more closes another (see below). An honest one needs some
  // milliseconds, so this many are a flood, or hundreds of agents that start at once: those come again.
  int max_unproven = 256;

  // After so long one that has not proved itself is closed.
  absl::Duration prove_within = absl::Seconds(10);
};

// Every connection that was accepted is in exactly one of the others, or has not proved itself yet.
struct TlsServerStats {
  int64_t accepted = 0;
  int64_t proved = 0;   // had a certificate of the job
  int64_t refused = 0;  // ended before that: no TLS, no certificate, or one of another authority; or left by itself
  int64_t expired = 0;  // closed after `prove_within`
  int64_t evicted = 0;  // closed because there were too many
};

// A gRPC server for whoever has a certificate of the job: mutual TLS, with the client's certificate required, over TCP.
// A stranger can take a connection for some seconds, and reaches nothing: no message is parsed before the proof, and
// what is read before it is a handshake of bounded size. Nothing that was recorded can be replayed: TLS draws new keys
// for each connection.
//
// gRPC does not say when a handshake has succeeded; the first call over a connection does. So a client's first call is
// of kProofMethod (tls_names.h), which no service has: it is answered UNIMPLEMENTED, by when the connection counts as
// proved. DialFirst (tls_dialer.h) does that, and begins again if the connection was closed before it came so far.
//
// It listens on addresses one by one and accepts by itself, because gRPC bounds neither how many strangers wait nor for
// how long, and tells nobody. Of too many it closes the oldest of the address that has the most, so that a flood from
// one host does not push out agents on others.
//
// Thread-safe, but for Shutdown(), which is called once, or left to the destructor.
class TlsServer {
 public:
  // `services` outlive the server; they may be registered with another one too. Errors: Unavailable; InvalidArgument:
  // the identity.
  static absl::StatusOr<std::unique_ptr<TlsServer>> Start(const std::vector<grpc::Service*>& services,
                                                          TlsServerOptions options);
  virtual ~TlsServer() = default;

  // Listens on a numeric address of this machine, if it does not yet, and returns "ADDRESS:PORT" (IPv6 in brackets). In
  // a range of ports a random one that is free is taken. Errors: InvalidArgument: not one numeric address; Unavailable:
  // no port, with the range and the system's reason.
  virtual absl::StatusOr<std::string> Listen(const std::string& address) = 0;
  // All that it listens on, in order of Listen().
  virtual std::vector<std::string> listening() const = 0;

  virtual TlsServerStats stats() const = 0;

  // Takes no new connections, lets calls end until `deadline`, then cancels them. Blocks.
  virtual void Shutdown(Instant deadline) = 0;
};

}  // namespace farandole
