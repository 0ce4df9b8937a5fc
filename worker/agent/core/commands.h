#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/ids.h"

namespace farandole {

// What a driver tells an agent (proto/v1/agent_service.proto has the meaning of each), in plain structs.

struct Welcomed {
  int protocol = 0;
  absl::Duration heartbeat_interval;
  int64_t output_credit = 0;  // bytes
};

struct SpawnProgram {
  WorkerId worker;
  Placement placement;
  std::vector<std::string> arguments;  // at least one
  std::vector<std::string> environment;
  std::string working_directory;
  std::vector<std::string> data_addresses;  // empty: the bootstrap's
  bool has_input = false;                   // what TakeInput brought; else nothing
  bool wants_result = false;
};

struct TakeInput {
  std::string piece;
};

struct SendSignal {
  WorkerId worker;
  int signal = 0;
};

struct AdoptAssignment {
  Generation generation;
  std::vector<AssignedMember> members;  // in rank order
};

struct GrantOutput {
  int64_t bytes = 0;
};

struct EndAll {
  std::string reason;
};

struct OpenRelay {
  uint64_t relay = 0;
  std::string address;  // numeric
  int port = 0;
};

using AgentCommand =
    std::variant<Welcomed, TakeInput, SpawnProgram, SendSignal, AdoptAssignment, GrantOutput, EndAll, OpenRelay>;

}  // namespace farandole
