#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"

namespace farandole {

// What all implementations refuse alike, and how they say it. Pure.

// Arguments of Transport::SendRecv: kInvalidArgument for a peer that is not another rank of the group.
absl::Status CheckPeers(const GroupSpec& spec, Rank to, absl::Span<const std::byte> out, Rank from,
                        absl::Span<std::byte> in);

// A frame that has arrived against what was asked for: kInternal if they differ.
absl::Status CheckFrame(const GroupSpec& spec, Rank from, uint64_t operation, uint64_t length,
                        uint64_t expected_operation, uint64_t expected_length);

// kUnavailable: "lost rank 2 on host gpu7: <how>".
absl::Status PeerLost(const GroupSpec& spec, Rank peer, absl::string_view how);

// kDeadlineExceeded, naming whom this rank still waits for.
absl::Status DeadlinePassed(const GroupSpec& spec, Rank to, bool sent, Rank from, bool received);

// Arguments of ControlChannel::Send: kInvalidArgument for a rank that `rank` has no link to in a star around rank 0,
// and for a message longer than ControlChannel::kMessageBytesMax.
absl::Status CheckControlSend(Rank rank, int size, Rank to, absl::string_view message);

}  // namespace farandole
