#include "collectives/cpu/create.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/cpu/flat/flat_communicator.h"
#include "collectives/cpu/transport_communicator.h"
#include "collectives/transport/shm/shm_transport.h"
#include "collectives/transport/shm_control/shm_control_channel.h"
#include "collectives/transport/solo_control_channel.h"
#include "collectives/transport/solo_transport.h"
#include "collectives/transport/tcp/tcp_control_channel.h"
#include "collectives/transport/tcp/tcp_transport.h"
#include "collectives/transport/transport.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// The first member on another host than this one; -1 if there is none.
Rank FirstElsewhere(const GroupSpec& spec) {
  for (Rank rank = 0; rank < spec.size(); ++rank) {
    if (spec.members[rank].host != spec.members[spec.rank].host) return rank;
  }
  return -1;
}

absl::Status CheckListener(const TcpListener* listener) {
  if (listener != nullptr && !listener->key().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("TCP between workers needs a listener that has been given the job's key");
}

// Shared memory or TCP: what kAuto means here.
TransportChoice Decide(const GroupSpec& spec, TransportChoice choice, const SlabSource* slabs) {
  if (choice != TransportChoice::kAuto) return choice;
  return FirstElsewhere(spec) < 0 && slabs != nullptr ? TransportChoice::kShm : TransportChoice::kTcp;
}

absl::Status CheckShm(const GroupSpec& spec, const SlabSource* slabs) {
  const Rank elsewhere = FirstElsewhere(spec);
  if (elsewhere >= 0) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory was asked for, but ", Describe(spec, elsewhere),
                                                   " is not on the host of ", Describe(spec, spec.rank)));
  }
  if (slabs == nullptr) return absl::InvalidArgumentError("shared memory was asked for, but there is no source of it");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(const GroupSpec& spec, TransportChoice choice,
                                                                 TcpListener* listener, SlabSource* slabs,
                                                                 Instant deadline) {
  std::unique_ptr<Transport> transport;
  if (spec.size() == 1) {
    transport = std::make_unique<SoloTransport>(spec);
  } else if (Decide(spec, choice, slabs) == TransportChoice::kTcp) {
    RETURN_IF_ERROR(CheckListener(listener));
    transport = CreateTcpTransport(spec, *listener);
  } else {
    RETURN_IF_ERROR(CheckShm(spec, slabs));
    if (spec.size() <= kFlatSizeMax) return CreateFlatCommunicator(spec, *slabs, deadline);
    ASSIGN_OR_RETURN(transport, CreateShmTransport(spec, *slabs, deadline));
  }
  return std::make_unique<TransportCommunicator>(std::move(transport));
}

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateControlChannel(const GroupSpec& spec, TransportChoice choice,
                                                                     TcpListener* listener, SlabSource* slabs,
                                                                     Instant deadline) {
  if (spec.size() == 1) return std::make_unique<SoloControlChannel>();
  const bool in_memory = Decide(spec, choice, slabs) == TransportChoice::kShm && spec.size() <= kFlatSizeMax;
  std::unique_ptr<ControlChannel> over_tcp;
  if (!in_memory || listener != nullptr) {
    RETURN_IF_ERROR(CheckListener(listener));
    over_tcp = CreateTcpControlChannel(spec, *listener);
  }
  if (!in_memory) return over_tcp;
  RETURN_IF_ERROR(CheckShm(spec, slabs));
  return CreateShmControlChannel(spec, *slabs, std::move(over_tcp), deadline);
}

}  // namespace farandole
