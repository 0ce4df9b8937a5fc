#pragma once

#include "absl/status/statusor.h"
#include "proto/v1/agent_service.pb.h"
#include "proto/v1/bootstrap.pb.h"
#include "worker/agent/core/bootstrap.h"
#include "worker/agent/core/commands.h"
#include "worker/agent/core/reports.h"

namespace farandole {

// The agent's side of proto/v1/agent_service.proto, and what it reads at its start.

// InvalidArgument: the message names the field that is wrong.
absl::StatusOr<AgentCommand> FromProto(const v1::DriverMessage& proto);
absl::StatusOr<Bootstrap> FromProto(const v1::AgentBootstrap& proto);

v1::AgentMessage ToProto(const AgentReport& report);

}  // namespace farandole
