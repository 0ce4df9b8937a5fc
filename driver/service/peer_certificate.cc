#include "driver/service/peer_certificate.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/rpc/tls_names.h"

namespace farandole {

absl::Status CheckPeerCertificate(const grpc::ServerContextBase& context, const std::string& job,
                                  const AgentIdentity& agent) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  const auto kinds = peer->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  if (kinds.empty() || kinds[0] != GRPC_SSL_TRANSPORT_SECURITY_TYPE) return absl::OkStatus();
  const std::string expected = AgentTlsName(job, agent.host, agent.incarnation);
  std::string names;
  for (const grpc::string_ref& name : peer->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME)) {
    if (absl::string_view(name.data(), name.size()) == expected) return absl::OkStatus();
    absl::StrAppend(&names, names.empty() ? "" : ", ", absl::string_view(name.data(), name.size()));
  }
  return absl::PermissionDeniedError(
      absl::StrCat("an agent that calls itself ", expected, " has the certificate of ", names));
}

}  // namespace farandole
