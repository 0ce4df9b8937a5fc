#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/cpu/create.h"
#include "collectives/engine/engine.h"
#include "collectives/transport/tcp/listen_sockets.h"
#include "tools/base/ids.h"

namespace farandole {

// What a worker's library is told by its environment.
struct WorkerEnvironment {
  // Where its agent listens ("unix-abstract:NAME"); empty outside of a job. FARANDOLE_AGENT.
  std::string agent;
  // Which start of a worker this process is. FARANDOLE_WORKER, 16 hexadecimal digits; never zero inside of a job.
  Incarnation incarnation;
  // The addresses that its data listener binds to, without ports. FARANDOLE_DATA_ADDRESS, between commas.
  std::vector<std::string> data_addresses = {"127.0.0.1"};
  // The ports it may take there. FARANDOLE_PORT_RANGE=FIRST-LAST; not set: any free ones.
  PortRange ports;
  // FARANDOLE_TRANSPORT=auto|shm|tcp.
  TransportChoice transport = TransportChoice::kAuto;
  // HOROVOD_FUSION_THRESHOLD, HOROVOD_DISABLE_GROUP_FUSION, HOROVOD_STALL_CHECK_TIME_SECONDS,
  // HOROVOD_STALL_CHECK_DISABLE, HOROVOD_STALL_SHUTDOWN_TIME_SECONDS.
  EngineConfig engine;
  // Outside of a job, yet started as one of several processes by mpirun or srun: "mpirun" in words; else empty.
  // OMPI_COMM_WORLD_SIZE, PMI_SIZE.
  std::string foreign_launcher;
};

// Reads it through `lookup`, which returns the value of a variable or nullptr. A variable that is empty counts as
// unset.
//
// InvalidArgument: a value that means nothing, or the agent without the worker; the message names variable and value.
absl::StatusOr<WorkerEnvironment> ReadWorkerEnvironment(const std::function<const char*(const char*)>& lookup);

}  // namespace farandole
