#pragma once

namespace farandole::env {

// Names that users and their scripts know from the original: the only place where they are spelled. Those that a worker
// gets are listed in plan/environment.h.

// Read by the launcher.
inline constexpr char kStartTimeout[] = "HOROVOD_START_TIMEOUT";  // whole seconds until every agent must be there

// Set for every worker.
inline constexpr char kHostname[] = "HOROVOD_HOSTNAME";  // as in the host list
inline constexpr char kRank[] = "HOROVOD_RANK";
inline constexpr char kSize[] = "HOROVOD_SIZE";
inline constexpr char kLocalRank[] = "HOROVOD_LOCAL_RANK";
inline constexpr char kLocalSize[] = "HOROVOD_LOCAL_SIZE";
inline constexpr char kCrossRank[] = "HOROVOD_CROSS_RANK";
inline constexpr char kCrossSize[] = "HOROVOD_CROSS_SIZE";
inline constexpr char kController[] = "HOROVOD_CONTROLLER";
inline constexpr char kCpuOperations[] = "HOROVOD_CPU_OPERATIONS";
inline constexpr char kGlooInterface[] = "HOROVOD_GLOO_IFACE";
inline constexpr char kNcclInterface[] = "NCCL_SOCKET_IFNAME";
inline constexpr char kPythonUnbuffered[] = "PYTHONUNBUFFERED";

// Ours, told to each worker by its agent. One that the launcher itself inherited (a job started inside a job) is about
// another agent and does not travel.
inline constexpr char kAgent[] = "FARANDOLE_AGENT";
inline constexpr char kWorker[] = "FARANDOLE_WORKER";
inline constexpr char kDataAddress[] = "FARANDOLE_DATA_ADDRESS";

// Ours, read by the launcher: where the agent's program is, when it is not beside the launcher's.
inline constexpr char kAgentProgram[] = "FARANDOLE_AGENT_PROGRAM";

}  // namespace farandole::env
