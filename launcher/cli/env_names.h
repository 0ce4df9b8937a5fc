#pragma once

namespace farandole::env {

// Names that users and their scripts know from the original: the only place where they are spelled. Those that a worker
// gets are listed in plan/environment.h.

// Read by the launcher.
inline constexpr char kStartTimeout[] = "HOROVOD_START_TIMEOUT";      // whole seconds until every agent must be there
inline constexpr char kElasticTimeout[] = "HOROVOD_ELASTIC_TIMEOUT";  // whole seconds to wait for enough slots
inline constexpr char kLsfJob[] = "LSB_JOBID";  // set inside a job of LSF, whose hosts the original would take

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

// Ours, told to each worker by the launcher: the ports it may listen on, FIRST-LAST.
inline constexpr char kPortRange[] = "FARANDOLE_PORT_RANGE";

// Ours, told by an agent to a worker that is to write a result (worker/python): where to.
inline constexpr char kResultFd[] = "FARANDOLE_RESULT_FD";

// Ours, read by the launcher and for nobody else: the folder of a job that runs a function (exec/function_folder.h).
inline constexpr char kFunctionFolder[] = "FARANDOLE_FUNCTION_FOLDER";

// Ours, read by the launcher: where the agent's program is, when it is not beside the launcher's.
inline constexpr char kAgentProgram[] = "FARANDOLE_AGENT_PROGRAM";

// Ours, read by the launcher, for tests: how many hosts it connects to itself before others help.
inline constexpr char kDirectHosts[] = "FARANDOLE_DIRECT_HOSTS";

// Nobody else may set these: they are a worker's place, and how it finds its agent.
inline constexpr const char* kSetForEveryWorker[] = {
    kHostname,  kRank,       kSize,          kLocalRank, kLocalSize, kCrossRank,
    kCrossSize, kController, kCpuOperations, kAgent,     kWorker,    kDataAddress,
};

}  // namespace farandole::env
