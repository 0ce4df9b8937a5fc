#include "worker/runtime/form_group.h"

#include <utility>

#include "collectives/core/communicator.h"
#include "collectives/cpu/create.h"
#include "collectives/transport/control_channel.h"
#include "tools/base/status_macros.h"

namespace farandole {

absl::StatusOr<std::unique_ptr<Engine>> FormGroup(const WorkerEnvironment& environment, const GroupSpec& spec,
                                                  TcpListener* listener, SlabSource* slabs, Instant deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator,
                   CreateCommunicator(spec, environment.transport, listener, slabs, deadline));
  ASSIGN_OR_RETURN(std::unique_ptr<ControlChannel> channel,
                   CreateControlChannel(spec, environment.transport, listener, slabs, deadline));
  return Engine::Create(environment.engine, spec, std::move(communicator), std::move(channel));
}

}  // namespace farandole
