#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/core/group.h"
#include "collectives/engine/engine.h"
#include "collectives/transport/slab_source.h"
#include "collectives/transport/tcp/tcp_listener.h"
#include "tools/base/instant.h"
#include "worker/runtime/environment.h"

namespace farandole {

// Makes this worker's part of a group, by the means that the environment asks for, and starts its engine. Links are
// made when they are first used, so this waits for no member, only, until `deadline`, for shared memory. A group of one
// needs neither `listener` nor `slabs` (nullptr), and has no sockets or shared memory.
//
// `listener` outlives the engine; `slabs` is used during the call only. Errors: those of CreateCommunicator.
absl::StatusOr<std::unique_ptr<Engine>> FormGroup(const WorkerEnvironment& environment, const GroupSpec& spec,
                                                  TcpListener* listener, SlabSource* slabs, Instant deadline);

}  // namespace farandole
