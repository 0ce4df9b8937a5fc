#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/core/communicator.h"
#include "collectives/core/group.h"
#include "collectives/transport/control_channel.h"
#include "collectives/transport/slab_source.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "tools/base/instant.h"

namespace farandole {

// How the bytes of a group's collectives travel.
enum class TransportChoice {
  kAuto,  // shared memory if all members are on one host and there is a slab source, else TCP
  kShm,
  kTcp,
};

// A communicator on ordinary memory for this member of the group. All members make theirs with the same choice, at
// about the same time; links are made when they are first used, so this waits for no peer, only, until `deadline`, for
// the slab source. A group of one needs neither source nor listener.
//
// `listener` (this worker's, started; its key is the job's) must outlive the result; `slabs` is used during the call
// only. Either may be null if the choice does not need it.
//
// Errors: kInvalidArgument when the choice cannot serve this group (shared memory between hosts, or what it needs is
// null), and those of CreateShmTransport.
absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(const GroupSpec& spec, TransportChoice choice,
                                                                 TcpListener* listener, SlabSource* slabs,
                                                                 Instant deadline);

// The control channel of the same group: in shared memory where the communicator is, with TCP beside it only to see who
// has died (not without a listener); else over TCP; or none that leads anywhere in a group of one. Errors as above.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateControlChannel(const GroupSpec& spec, TransportChoice choice,
                                                                     TcpListener* listener, SlabSource* slabs,
                                                                     Instant deadline);

}  // namespace farandole
