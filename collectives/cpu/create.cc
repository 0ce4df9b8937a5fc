#include "collectives/cpu/create.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "collectives/cpu/transport_communicator.h"
#include "collectives/transport/shm/shm_transport.h"
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

absl::StatusOr<std::unique_ptr<Transport>> CreateTransport(const GroupSpec& spec, TransportChoice choice,
                                                           TcpListener* listener, SlabSource* slabs, Instant deadline) {
  if (spec.size() == 1) return std::make_unique<SoloTransport>(spec);
  const Rank elsewhere = FirstElsewhere(spec);
  if (choice == TransportChoice::kAuto) {
    choice = elsewhere < 0 && slabs != nullptr ? TransportChoice::kShm : TransportChoice::kTcp;
  }
  if (choice == TransportChoice::kTcp) {
    RETURN_IF_ERROR(CheckListener(listener));
    return CreateTcpTransport(spec, *listener);
  }
  if (elsewhere >= 0) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory was asked for, but ", Describe(spec, elsewhere),
                                                   " is not on the host of ", Describe(spec, spec.rank)));
  }
  if (slabs == nullptr) return absl::InvalidArgumentError("shared memory was asked for, but there is no source of it");
  return CreateShmTransport(spec, *slabs, deadline);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(const GroupSpec& spec, TransportChoice choice,
                                                                 TcpListener* listener, SlabSource* slabs,
                                                                 Instant deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, CreateTransport(spec, choice, listener, slabs, deadline));
  return std::make_unique<TransportCommunicator>(std::move(transport));
}

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateControlChannel(const GroupSpec& spec, TcpListener* listener) {
  if (spec.size() == 1) return std::make_unique<SoloControlChannel>();
  RETURN_IF_ERROR(CheckListener(listener));
  return CreateTcpControlChannel(spec, *listener);
}

}  // namespace farandole
