#include "collectives/transport/tcp/tcp_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/tcp/socket.h"

namespace farandole {

LinkClaim ClaimOf(const GroupSpec& spec, Rank to, LinkPurpose purpose) {
  LinkClaim claim;
  claim.generation = spec.generation;
  claim.group = spec.group;
  claim.from = spec.rank;
  claim.to = to;
  claim.purpose = purpose;
  claim.from_incarnation = spec.members[spec.rank].incarnation;
  claim.to_incarnation = spec.members[to].incarnation;
  return claim;
}

absl::StatusOr<HandshakeIo> BeginLink(const GroupSpec& spec, Rank to, LinkPurpose purpose, absl::string_view key) {
  absl::StatusOr<UniqueFd> fd = BeginConnect(spec.members[to].endpoint);
  if (!fd.ok()) return LinkFailed(spec, to, fd.status());
  return HandshakeIo(*std::move(fd), Handshake::Client(key, ClaimOf(spec, to, purpose)));
}

absl::Status LinkFailed(const GroupSpec& spec, Rank to, const absl::Status& cause) {
  return PeerLost(spec, to, absl::StrCat("connecting to ", spec.members[to].endpoint, ": ", cause.message()));
}

void EndLink(UniqueFd& fd, int owner_pid) {
  if (fd && ::getpid() == owner_pid) ::shutdown(fd.get(), SHUT_RDWR);
  fd.reset();
}

}  // namespace farandole
