#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"

namespace farandole {

// What all implementations refuse alike, and how they say it. Pure.

// Arguments of Transport::Post and Receive: kInvalidArgument for a peer that is not another rank of the group, unless
// there are no bytes.
absl::Status CheckPost(const GroupSpec& spec, Rank to, absl::Span<const std::byte> bytes);
absl::Status CheckReceive(const GroupSpec& spec, Rank from, absl::Span<std::byte> bytes);

// A frame that has arrived against what was asked for: kInternal if they differ.
absl::Status CheckFrame(const GroupSpec& spec, Rank from, uint64_t operation, uint64_t length,
                        uint64_t expected_operation, uint64_t expected_length);

// kUnavailable: "lost rank 2 on host gpu7: <how>".
absl::Status PeerLost(const GroupSpec& spec, Rank peer, absl::string_view how);

// kDeadlineExceeded, naming whom this rank still waits for: those in `to` to take data, `from` (if any) to send some.
absl::Status DeadlinePassed(const GroupSpec& spec, absl::Span<const Rank> to, absl::optional<Rank> from);

// Arguments of ControlChannel::Send: kInvalidArgument for a rank that `rank` has no link to in a star around rank 0,
// and for a message longer than ControlChannel::kMessageBytesMax.
absl::Status CheckControlSend(Rank rank, int size, Rank to, absl::string_view message);

}  // namespace farandole
