#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/rpc/tls_identity.h"
#include "tools/base/ids.h"

namespace farandole {

// The certificate authority of one job: made at its start, never written anywhere, gone with the driver. It signs the
// certificates of the driver and of each agent, with keys that it draws for them; who has one is of this job, and
// nobody else is.
//
// Keys are of P-256: as good as any here, fast, and known to every TLS library. Certificates are valid for 30 days,
// which a job does not outlive unless it makes new connections, and from a day ago: clocks of hosts differ. Names are
// those of proto/rpc/tls_names.h. An agent's certificate is good for a client only, the driver's for a server only, and
// none for signing others.
//
// The alternative was one secret for all (a pre-shared key): simpler, but gRPC cannot do it, and an agent could not be
// told from another, nor from the driver.
//
// Thread-safe.
class JobAuthority {
 public:
  // Errors: Internal, with OpenSSL's words.
  static absl::StatusOr<std::unique_ptr<JobAuthority>> Create(std::string job);
  virtual ~JobAuthority() = default;

  virtual const std::string& job() const = 0;

  virtual absl::StatusOr<TlsIdentity> IssueServer() const = 0;
  virtual absl::StatusOr<TlsIdentity> IssueAgent(const std::string& host, Incarnation incarnation) const = 0;
};

}  // namespace farandole
