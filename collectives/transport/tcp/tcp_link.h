#pragma once

#include "absl/status/statusor.h"
#include "collectives/core/group.h"
#include "collectives/transport/tcp/dial.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "collectives/transport/tcp/wire.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// The claim of the link from this rank to `to`.
LinkClaim ClaimOf(const GroupSpec& spec, Rank to, LinkPurpose purpose, int stream = 0);

// Begins to make that link: where `to` was proven to be before, then at its other addresses (candidates.h).
absl::StatusOr<Dial> BeginLink(const GroupSpec& spec, Rank to, LinkPurpose purpose, const TcpListener& listener,
                               int stream = 0);

// The link of a dial that has succeeded; the next one to `to` begins at this address.
UniqueFd TakeLink(Dial& dial, const GroupSpec& spec, Rank to, TcpListener& listener);

// kUnavailable for a link to `to` that could not be made because of `cause`, an error of the two above.
absl::Status LinkFailed(const GroupSpec& spec, Rank to, const absl::Status& cause);

// Ends the connection, not just this descriptor of it: a process that forked since may still hold another one, and the
// peer would wait for it. What was sent is still delivered. Only if this is process `owner_pid`.
void EndLink(UniqueFd& fd, int owner_pid);

}  // namespace farandole
