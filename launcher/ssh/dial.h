#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/ssh/cancellation.h"
#include "tools/base/instant.h"
#include "tools/base/unique_fd.h"

namespace farandole {

// Connects a TCP stream to one of the addresses of `host`, IPv4 or IPv6. They are tried in the resolver's order, each
// 300 ms after the one before or as soon as that one has failed; the first that answers wins. The stream is
// non-blocking, with keep-alive on: a silent peer is noticed in about a minute.
//
// `on_resolved` is called between looking up and connecting. A look-up that the resolver does not end in time is left
// to its own thread, which ends when the resolver does.
//
// Errors: Unavailable: the name is not known, or no address took the connection, each with its reason;
// DeadlineExceeded; Cancelled.
absl::StatusOr<UniqueFd> Dial(const std::string& host, int port, Instant deadline, const Cancellation& cancellation,
                              const std::function<void()>& on_resolved);

// The numeric addresses of `host`, 16 at most, in the resolver's order. Errors: as above, of looking up.
absl::StatusOr<std::vector<std::string>> LookUp(const std::string& host, Instant deadline,
                                                const Cancellation& cancellation);

}  // namespace farandole
