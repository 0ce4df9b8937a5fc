#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/events.h"
#include "driver/core/ids.h"
#include "driver/core/worker_command.h"
#include "proto/v1/agent_service.pb.h"
#include "tools/base/ids.h"

namespace farandole {

// The driver's side of proto/v1/agent_service.proto.

// Bytes of one Input.
inline constexpr size_t kMaxInputPiece = 256 << 10;

// The protocol revisions that this driver speaks.
inline constexpr uint32_t kDriverProtocolMin = 1;
inline constexpr uint32_t kDriverProtocolMax = 1;

// Which agent is at the other end of a stream: said once, in its first message.
struct AgentIdentity {
  std::string host;
  Incarnation incarnation;
  friend auto operator<=>(const AgentIdentity&, const AgentIdentity&) = default;
};

// The first message of an agent.
struct AgentHello {
  uint32_t protocol_min = 0, protocol_max = 0;
  std::string job;
  AgentIdentity agent;
  std::string version;
  uint32_t pid = 0;
  std::vector<OfferedAddress> addresses;
};

// Bytes that a worker wrote, to the streams that people read or as its result.
struct OutputPiece {
  WorkerId worker;
  OutputStream stream = OutputStream::kStdout;
  std::string data;
};

// All streams of a worker are at their end.
struct OutputEnd {
  WorkerId worker;
};

// A worker has lost a peer of its generation; a sentence for people.
struct NoticeForPeople {
  WorkerId worker;
  Generation generation;
  std::string text;
};

// Any later message of an agent.
using AgentWord = std::variant<Event, OutputPiece, OutputEnd, NoticeForPeople>;

// Both: InvalidArgument, with the field that is wrong. An agent speaks of workers on its own host only.
absl::StatusOr<AgentHello> HelloFromProto(const v1::AgentMessage& proto);
absl::StatusOr<AgentWord> FromProto(const v1::AgentMessage& proto, const AgentIdentity& from);

v1::DriverMessage WelcomeToProto(absl::Duration heartbeat_interval, int64_t output_credit);
v1::DriverMessage CreditToProto(int64_t bytes);
v1::DriverMessage OpenRelayToProto(uint64_t relay, const std::string& address, int port);
// A piece, of at most kMaxInputPiece bytes, of what every worker of the job reads.
v1::DriverMessage InputToProto(absl::string_view piece);
v1::DriverMessage ToProto(const SpawnWorker& action, const WorkerCommand& command, bool has_input = false);
v1::DriverMessage ToProto(const SignalWorker& action);
v1::DriverMessage ToProto(const SendAssignment& action);
v1::DriverMessage ToProto(const EndAgent& action);

}  // namespace farandole
