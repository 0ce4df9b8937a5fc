#include "proto/convert/driver_convert.h"

#include <arpa/inet.h>

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/convert/types_convert.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Far above what an agent of ours sends; below what would hurt.
constexpr size_t kMaxData = 1 << 20;
constexpr size_t kMaxText = 64 << 10;
constexpr size_t kMaxEndpoint = 2048;  // of all its addresses
constexpr uint32_t kMaxErrno = 4095;
constexpr int kMaxAddresses = 256;
constexpr size_t kMaxName = 64;

absl::Status Wrong(absl::string_view field, absl::string_view how) {
  return absl::InvalidArgumentError(absl::StrCat(field, " ", how));
}

absl::Status CheckLength(absl::string_view field, absl::string_view value, size_t longest) {
  if (value.size() <= longest) return absl::OkStatus();
  return Wrong(field, absl::StrCat("has ", value.size(), " bytes, more than ", longest));
}

absl::StatusOr<WorkerId> WorkerOf(const v1::WorkerId& proto, const AgentIdentity& from) {
  ASSIGN_OR_RETURN(WorkerId worker, FromProto(proto), std::move(_) << "worker");
  if (worker.slot.host != from.host) {
    return Wrong("worker", absl::StrCat("is of host ", worker.slot.host, ", the agent of ", from.host));
  }
  return worker;
}

absl::StatusOr<AgentWord> FromStarted(const v1::WorkerStarted& proto, const AgentIdentity& from) {
  WorkerStarted event;
  ASSIGN_OR_RETURN(event.worker, WorkerOf(proto.worker(), from));
  if (proto.pid() == 0) return Wrong("pid", "is zero");
  event.pid = proto.pid();
  return Event(event);
}

absl::StatusOr<AgentWord> FromStartFailed(const v1::WorkerStartFailed& proto, const AgentIdentity& from) {
  WorkerStartFailed event;
  ASSIGN_OR_RETURN(event.worker, WorkerOf(proto.worker(), from));
  if (proto.error() == 0 || proto.error() > kMaxErrno)
    return Wrong("error", absl::StrCat(proto.error(), " is no errno"));
  RETURN_IF_ERROR(CheckLength("what", proto.what(), kMaxText));
  event.error = static_cast<int>(proto.error());
  event.what = proto.what();
  return Event(event);
}

absl::StatusOr<AgentWord> FromJoined(const v1::WorkerJoined& proto, const AgentIdentity& from) {
  WorkerJoined event;
  ASSIGN_OR_RETURN(event.worker, WorkerOf(proto.worker(), from));
  if (proto.endpoint().empty()) return Wrong("endpoint", "is empty");
  RETURN_IF_ERROR(CheckLength("endpoint", proto.endpoint(), kMaxEndpoint));
  event.endpoint = proto.endpoint();
  event.after = Generation(proto.after_generation());
  return Event(event);
}

absl::StatusOr<AgentWord> FromLeft(const v1::WorkerLeft& proto, const AgentIdentity& from) {
  WorkerLeft event;
  ASSIGN_OR_RETURN(event.worker, WorkerOf(proto.worker(), from));
  if (proto.generation() == 0) return Wrong("generation", "is zero");
  event.generation = Generation(proto.generation());
  return Event(event);
}

absl::StatusOr<AgentWord> FromExited(const v1::WorkerExited& proto, const AgentIdentity& from) {
  WorkerExited event;
  ASSIGN_OR_RETURN(event.worker, WorkerOf(proto.worker(), from));
  ASSIGN_OR_RETURN(event.status, FromProto(proto.status()), std::move(_) << "status");
  if (proto.out_of_memory() && event.status.signal == 0) return Wrong("out_of_memory", "is set, and no signal");
  event.out_of_memory = proto.out_of_memory();
  return Event(event);
}

absl::StatusOr<OutputStream> StreamFromProto(v1::Output::Stream stream) {
  switch (stream) {
    case v1::Output::STDOUT:
      return OutputStream::kStdout;
    case v1::Output::STDERR:
      return OutputStream::kStderr;
    case v1::Output::RESULT:
      return OutputStream::kResult;
    default:
      return Wrong("stream", absl::StrCat(static_cast<int>(stream), " is neither stdout nor stderr nor a result"));
  }
}

absl::StatusOr<AgentWord> FromOutput(const v1::Output& proto, const AgentIdentity& from) {
  OutputPiece piece;
  ASSIGN_OR_RETURN(piece.worker, WorkerOf(proto.worker(), from));
  ASSIGN_OR_RETURN(piece.stream, StreamFromProto(proto.stream()));
  RETURN_IF_ERROR(CheckLength("data", proto.data(), kMaxData));
  piece.data = proto.data();
  return piece;
}

absl::StatusOr<AgentWord> FromOutputEnded(const v1::OutputEnded& proto, const AgentIdentity& from) {
  OutputEnd end;
  ASSIGN_OR_RETURN(end.worker, WorkerOf(proto.worker(), from));
  return end;
}

absl::StatusOr<AgentWord> FromNotice(const v1::WorkerNotice& proto, const AgentIdentity& from) {
  NoticeForPeople notice;
  ASSIGN_OR_RETURN(notice.worker, WorkerOf(proto.worker(), from));
  RETURN_IF_ERROR(CheckLength("text", proto.text(), kMaxText));
  notice.generation = Generation(proto.generation());
  notice.text = proto.text();
  return notice;
}

absl::StatusOr<AgentWord> Named(absl::string_view message, absl::StatusOr<AgentWord> word) {
  if (word.ok()) return word;
  return absl::Status(word.status().code(), absl::StrCat(message, ": ", word.status().message()));
}

// The longest prefix of the family of a numeric address; 0: it is none.
uint32_t PrefixLimit(const std::string& address) {
  unsigned char bytes[sizeof(in6_addr)];
  if (::inet_pton(AF_INET, address.c_str(), bytes) == 1) return 32;
  return ::inet_pton(AF_INET6, address.c_str(), bytes) == 1 ? 128 : 0;
}

absl::StatusOr<OfferedAddress> AddressFromProto(const v1::HostAddress& proto) {
  RETURN_IF_ERROR(CheckLength("interface", proto.interface(), kMaxName));
  RETURN_IF_ERROR(CheckLength("address", proto.address(), kMaxName));
  const uint32_t limit = PrefixLimit(proto.address());
  if (limit == 0) return Wrong("address", absl::StrCat("\"", proto.address(), "\" is not numeric"));
  if (proto.prefix_length() > limit) {
    return Wrong("prefix_length", absl::StrCat(proto.prefix_length(), " is more than ", limit));
  }
  return OfferedAddress{proto.interface(), proto.address(), static_cast<int>(proto.prefix_length())};
}

}  // namespace

absl::StatusOr<AgentHello> HelloFromProto(const v1::AgentMessage& proto) {
  if (!proto.has_register_()) return Wrong("the first message", "is not register");
  const v1::Register& said = proto.register_();
  if (said.protocol_min() == 0 || said.protocol_min() > said.protocol_max()) {
    return Wrong("register", absl::StrCat("has the protocol range ", said.protocol_min(), " to ", said.protocol_max()));
  }
  if (said.job().empty()) return Wrong("register", "has no job");
  if (said.host().empty()) return Wrong("register", "has no host");
  if (said.incarnation() == 0) return Wrong("register", "has no incarnation");
  AgentHello hello;
  hello.protocol_min = said.protocol_min();
  hello.protocol_max = said.protocol_max();
  hello.job = said.job();
  hello.agent = AgentIdentity{said.host(), Incarnation(said.incarnation())};
  hello.version = said.version();
  hello.pid = said.pid();
  if (said.addresses_size() > kMaxAddresses) {
    return Wrong("register", absl::StrCat("has ", said.addresses_size(), " addresses"));
  }
  for (int i = 0; i < said.addresses_size(); ++i) {
    ASSIGN_OR_RETURN(OfferedAddress address, AddressFromProto(said.addresses(i)),
                     std::move(_) << "register: addresses[" << i << "]");
    hello.addresses.push_back(std::move(address));
  }
  return hello;
}

absl::StatusOr<AgentWord> FromProto(const v1::AgentMessage& proto, const AgentIdentity& from) {
  switch (proto.message_case()) {
    case v1::AgentMessage::kRegister:
      return Wrong("register", "is sent once");
    case v1::AgentMessage::kHeartbeat:
      return Event(AgentHeard{from.host, from.incarnation});
    case v1::AgentMessage::kWorkerStarted:
      return Named("worker_started", FromStarted(proto.worker_started(), from));
    case v1::AgentMessage::kWorkerStartFailed:
      return Named("worker_start_failed", FromStartFailed(proto.worker_start_failed(), from));
    case v1::AgentMessage::kWorkerJoined:
      return Named("worker_joined", FromJoined(proto.worker_joined(), from));
    case v1::AgentMessage::kWorkerLeft:
      return Named("worker_left", FromLeft(proto.worker_left(), from));
    case v1::AgentMessage::kWorkerExited:
      return Named("worker_exited", FromExited(proto.worker_exited(), from));
    case v1::AgentMessage::kOutput:
      return Named("output", FromOutput(proto.output(), from));
    case v1::AgentMessage::kOutputEnded:
      return Named("output_ended", FromOutputEnded(proto.output_ended(), from));
    case v1::AgentMessage::kWorkerNotice:
      return Named("worker_notice", FromNotice(proto.worker_notice(), from));
    case v1::AgentMessage::kEnding:
      RETURN_IF_ERROR(CheckLength("reason", proto.ending().reason(), kMaxText)) << "ending";
      return Event(AgentEnding{from.host, from.incarnation, proto.ending().reason()});
    case v1::AgentMessage::MESSAGE_NOT_SET:
      break;
  }
  return Wrong("message", "is not set, or of a kind that this version does not know");
}

v1::DriverMessage WelcomeToProto(absl::Duration heartbeat_interval, int64_t output_credit) {
  v1::DriverMessage message;
  message.mutable_welcome()->set_protocol(kDriverProtocolMax);
  *message.mutable_welcome()->mutable_heartbeat_interval() = ToProto(heartbeat_interval);
  message.mutable_welcome()->set_output_credit(static_cast<uint64_t>(output_credit));
  return message;
}

v1::DriverMessage CreditToProto(int64_t bytes) {
  v1::DriverMessage message;
  message.mutable_output_credit()->set_bytes(static_cast<uint64_t>(bytes));
  return message;
}

v1::DriverMessage OpenRelayToProto(uint64_t relay, const std::string& address, int port) {
  v1::DriverMessage message;
  message.mutable_open_relay()->set_relay(relay);
  message.mutable_open_relay()->set_address(address);
  message.mutable_open_relay()->set_port(static_cast<uint32_t>(port));
  return message;
}

v1::DriverMessage InputToProto(absl::string_view piece) {
  v1::DriverMessage message;
  message.mutable_input()->set_data(piece.data(), piece.size());
  return message;
}

v1::DriverMessage ToProto(const SpawnWorker& action, const WorkerCommand& command, bool has_input) {
  v1::DriverMessage message;
  v1::Spawn* spawn = message.mutable_spawn();
  *spawn->mutable_worker() = ToProto(action.worker);
  *spawn->mutable_placement() = ToProto(action.placement);
  for (const std::string& argument : command.arguments) spawn->add_arguments(argument);
  for (const std::string& variable : command.environment) spawn->add_environment(variable);
  spawn->set_working_directory(command.working_directory);
  for (const std::string& address : command.data_addresses) spawn->add_data_addresses(address);
  spawn->set_has_input(has_input);
  spawn->set_wants_result(command.wants_result);
  return message;
}

v1::DriverMessage ToProto(const SignalWorker& action) {
  v1::DriverMessage message;
  *message.mutable_signal()->mutable_worker() = ToProto(action.worker);
  message.mutable_signal()->set_signal(static_cast<uint32_t>(action.signal));
  return message;
}

v1::DriverMessage ToProto(const SendAssignment& action) {
  v1::DriverMessage message;
  *message.mutable_assignment() = ToProto(action.generation, action.members);
  return message;
}

v1::DriverMessage ToProto(const EndAgent& action) {
  v1::DriverMessage message;
  message.mutable_end()->set_reason(ToUtf8(action.reason));
  return message;
}

}  // namespace farandole
