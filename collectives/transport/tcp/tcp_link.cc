#include "collectives/transport/tcp/tcp_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/transport/checks.h"
#include "collectives/transport/tcp/candidates.h"
#include "collectives/transport/tcp/socket.h"

namespace farandole {

namespace {

// In the order in which to try them.
std::vector<std::string> EndpointsOf(const GroupSpec& spec, Rank to, const TcpListener& listener) {
  const GroupMember& peer = spec.members[to];
  std::vector<Candidate> candidates;
  for (std::string& endpoint : SplitEndpoints(peer.endpoint)) {
    const absl::StatusOr<SocketAddress> address = ParseEndpoint(WithoutZone(endpoint));
    candidates.push_back({std::move(endpoint), address.ok() ? AddressBits(*address) : ""});
  }
  const bool same_host = peer.host == spec.members[spec.rank].host;
  std::vector<std::string> ordered = OrderCandidates(candidates, listener.addresses(), same_host);
  const auto proven = std::find(ordered.begin(), ordered.end(), listener.proven().Of(peer.incarnation));
  if (proven != ordered.end()) std::rotate(ordered.begin(), proven, std::next(proven));
  return ordered;
}

}  // namespace

LinkClaim ClaimOf(const GroupSpec& spec, Rank to, LinkPurpose purpose, int stream) {
  LinkClaim claim;
  claim.generation = spec.generation;
  claim.group = spec.group;
  claim.from = spec.rank;
  claim.to = to;
  claim.purpose = purpose;
  claim.stream = stream;
  claim.from_incarnation = spec.members[spec.rank].incarnation;
  claim.to_incarnation = spec.members[to].incarnation;
  return claim;
}

absl::StatusOr<Dial> BeginLink(const GroupSpec& spec, Rank to, LinkPurpose purpose, const TcpListener& listener,
                               int stream) {
  const std::vector<std::string> endpoints = EndpointsOf(spec, to, listener);
  if (endpoints.empty()) return absl::InvalidArgumentError("to nowhere: it has no address");
  return Dial::Begin(endpoints, listener.key(), ClaimOf(spec, to, purpose, stream), Dial::Options());
}

UniqueFd TakeLink(Dial& dial, const GroupSpec& spec, Rank to, TcpListener& listener) {
  listener.proven().Remember(spec.members[to].incarnation, dial.endpoint());
  return dial.TakeFd();
}

absl::Status LinkFailed(const GroupSpec& spec, Rank to, const absl::Status& cause) {
  return PeerLost(spec, to, absl::StrCat("connecting ", cause.message()));
}

void EndLink(UniqueFd& fd, int owner_pid) {
  if (fd && ::getpid() == owner_pid) ::shutdown(fd.get(), SHUT_RDWR);
  fd.reset();
}

}  // namespace farandole
