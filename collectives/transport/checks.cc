#include "collectives/transport/checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "collectives/transport/control_channel.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

absl::Status CheckPeer(const GroupSpec& spec, Rank peer, absl::string_view direction) {
  if (peer >= 0 && peer < spec.size() && peer != spec.rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", spec.rank, " cannot ", direction, " rank ", peer, " in a group of ", spec.size()));
}

}  // namespace

absl::Status CheckPost(const GroupSpec& spec, Rank to, absl::Span<const std::byte> bytes) {
  return bytes.empty() ? absl::OkStatus() : CheckPeer(spec, to, "send to");
}

absl::Status CheckReceive(const GroupSpec& spec, Rank from, absl::Span<std::byte> bytes) {
  return bytes.empty() ? absl::OkStatus() : CheckPeer(spec, from, "receive from");
}

absl::Status CheckFrame(const GroupSpec& spec, Rank from, uint64_t operation, uint64_t length,
                        uint64_t expected_operation, uint64_t expected_length) {
  if (operation == expected_operation && length == expected_length) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(Describe(spec, from), " sends operation ", operation, " with ", length,
                                          " bytes where rank ", spec.rank, " expects operation ", expected_operation,
                                          " with ", expected_length,
                                          " bytes: the ranks have called different collectives"));
}

absl::Status PeerLost(const GroupSpec& spec, Rank peer, absl::string_view how) {
  return absl::UnavailableError(absl::StrCat("lost ", Describe(spec, peer), ": ", how));
}

absl::Status DeadlinePassed(const GroupSpec& spec, absl::Span<const Rank> to, absl::optional<Rank> from) {
  std::string waits;
  for (const Rank rank : to) absl::StrAppend(&waits, waits.empty() ? "" : " and ", Describe(spec, rank));
  if (!to.empty()) waits += " to take data";
  if (!to.empty() && from.has_value()) waits += " and for ";
  if (from.has_value()) absl::StrAppend(&waits, Describe(spec, *from), " to send data");
  return absl::DeadlineExceededError(
      absl::StrCat("rank ", spec.rank, " waited for ", waits, " until the deadline of the operation"));
}

absl::Status CheckControlSend(Rank rank, int size, Rank to, absl::string_view message) {
  const bool linked = to != rank && to >= 0 && to < size && (rank == 0 || to == 0);
  if (!linked) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " of ", size, " has no control link to rank ", to,
                                                   ": only rank 0 is linked with all others"));
  }
  if (static_cast<int64_t>(message.size()) > ControlChannel::kMessageBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a control message of ", message.size(), " bytes to rank ", to,
                                                   ": at most ", ControlChannel::kMessageBytesMax, " can be sent"));
  }
  return absl::OkStatus();
}

}  // namespace farandole
