#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/core/group.h"
#include "collectives/transport/tcp/handshake_io.h"
#include "collectives/transport/tcp/wire.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// The claim of the link from this rank to `to`.
LinkClaim ClaimOf(const GroupSpec& spec, Rank to, LinkPurpose purpose);

// Begins to make that link. Errors and later ones of the result: as of PeerLost.
absl::StatusOr<HandshakeIo> BeginLink(const GroupSpec& spec, Rank to, LinkPurpose purpose, absl::string_view key);

// kUnavailable for a link to `to` that could not be made because of `cause`.
absl::Status LinkFailed(const GroupSpec& spec, Rank to, const absl::Status& cause);

// Ends the connection, not just this descriptor of it: a process that forked since may still hold another one, and the
// peer would wait for it. What was sent is still delivered. Only if this is process `owner_pid`.
void EndLink(UniqueFd& fd, int owner_pid);

}  // namespace farandole
