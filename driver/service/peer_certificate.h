#pragma once

#include <string>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/convert/driver_convert.h"

namespace farandole {

// PermissionDenied, with both names, if there is a certificate at the other end of a call and it is not that of
// `agent`.
//
// Only two servers have the driver's service: over TLS nobody calls without a certificate of the job's authority, and
// over the unix socket nobody has one.
absl::Status CheckPeerCertificate(const grpc::ServerContextBase& context, const std::string& job,
                                  const AgentIdentity& agent);

}  // namespace farandole
