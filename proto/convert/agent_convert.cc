#include "proto/convert/agent_convert.h"

#include <arpa/inet.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/convert/types_convert.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

absl::Status Wrong(absl::string_view field, absl::string_view how) {
  return absl::InvalidArgumentError(absl::StrCat(field, " ", how));
}

constexpr size_t kMaxInputPiece = 256 << 10;

// execve's strings end at a zero byte.
absl::Status CheckString(absl::string_view field, int index, absl::string_view bytes) {
  if (bytes.find('\0') != absl::string_view::npos) {
    return Wrong(absl::StrCat(field, "[", index, "]"), "has a zero byte in it");
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CreditFromProto(uint64_t bytes) {
  if (bytes == 0 || bytes > std::numeric_limits<int64_t>::max() / 2) {
    return Wrong("bytes of output", absl::StrCat(bytes, " is not between 1 and 2^62"));
  }
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<AgentCommand> FromWelcome(const v1::Welcome& proto) {
  Welcomed command;
  if (proto.protocol() == 0 || proto.protocol() > 1'000'000) {
    return Wrong("protocol", absl::StrCat(proto.protocol(), " is no revision"));
  }
  command.protocol = static_cast<int>(proto.protocol());
  ASSIGN_OR_RETURN(command.heartbeat_interval, FromProto(proto.heartbeat_interval()),
                   std::move(_) << "heartbeat_interval");
  ASSIGN_OR_RETURN(command.output_credit, CreditFromProto(proto.output_credit()), std::move(_) << "output_credit");
  return command;
}

bool IsNumericAddress(const std::string& address) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, address.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, address.c_str(), bytes) == 1;
}

absl::StatusOr<AgentCommand> FromSpawn(const v1::Spawn& proto) {
  SpawnProgram command;
  ASSIGN_OR_RETURN(command.worker, FromProto(proto.worker()), std::move(_) << "worker");
  ASSIGN_OR_RETURN(command.placement, FromProto(proto.placement()), std::move(_) << "placement");
  if (proto.arguments().empty()) return Wrong("arguments", "is empty");
  for (int i = 0; i < proto.arguments_size(); ++i) {
    RETURN_IF_ERROR(CheckString("arguments", i, proto.arguments(i)));
    command.arguments.push_back(proto.arguments(i));
  }
  for (int i = 0; i < proto.environment_size(); ++i) {
    RETURN_IF_ERROR(CheckString("environment", i, proto.environment(i)));
    // The value stays out of the message: it may be a secret.
    if (proto.environment(i).find('=') == std::string::npos) {
      return Wrong(absl::StrCat("environment[", i, "]"), "is not of the form NAME=VALUE");
    }
    command.environment.push_back(proto.environment(i));
  }
  RETURN_IF_ERROR(CheckString("working_directory", 0, proto.working_directory()));
  if (proto.working_directory().empty() || proto.working_directory().front() != '/') {
    return Wrong("working_directory", absl::StrCat("\"", proto.working_directory(), "\" is not absolute"));
  }
  command.working_directory = proto.working_directory();
  for (int i = 0; i < proto.data_addresses_size(); ++i) {
    if (!IsNumericAddress(proto.data_addresses(i))) {
      return Wrong(absl::StrCat("data_addresses[", i, "]"),
                   absl::StrCat("\"", proto.data_addresses(i), "\" is no numeric address"));
    }
    command.data_addresses.push_back(proto.data_addresses(i));
  }
  command.has_input = proto.has_input();
  command.wants_result = proto.wants_result();
  return command;
}

absl::StatusOr<AgentCommand> FromInput(const v1::Input& proto) {
  if (proto.data().empty()) return Wrong("data", "is empty");
  if (proto.data().size() > kMaxInputPiece) {
    return Wrong("data", absl::StrCat("has ", proto.data().size(), " bytes, more than ", kMaxInputPiece));
  }
  return TakeInput{proto.data()};
}

absl::StatusOr<AgentCommand> FromSignal(const v1::Signal& proto) {
  SendSignal command;
  ASSIGN_OR_RETURN(command.worker, FromProto(proto.worker()), std::move(_) << "worker");
  if (proto.signal() == 0 || proto.signal() >= NSIG) {
    return Wrong("signal", absl::StrCat(proto.signal(), " is no signal"));
  }
  command.signal = static_cast<int>(proto.signal());
  return command;
}

absl::StatusOr<AgentCommand> FromAssignment(const v1::Assignment& proto) {
  AdoptAssignment command;
  ASSIGN_OR_RETURN(command.members, FromProto(proto));
  command.generation = Generation(proto.generation());
  return command;
}

absl::StatusOr<AgentCommand> FromCredit(const v1::OutputCredit& proto) {
  GrantOutput command;
  ASSIGN_OR_RETURN(command.bytes, CreditFromProto(proto.bytes()));
  return command;
}

absl::StatusOr<AgentCommand> FromOpenRelay(const v1::OpenRelay& proto) {
  if (proto.relay() == 0) return Wrong("relay", "is zero");
  if (!IsNumericAddress(proto.address())) {
    return Wrong("address", absl::StrCat("\"", proto.address(), "\" is no numeric address"));
  }
  if (proto.port() == 0 || proto.port() > 65535) return Wrong("port", absl::StrCat(proto.port(), " is no port"));
  return OpenRelay{proto.relay(), proto.address(), static_cast<int>(proto.port())};
}

v1::Output::Stream ToProto(WorkerOutput::Stream stream) {
  switch (stream) {
    case WorkerOutput::Stream::kStdout:
      return v1::Output::STDOUT;
    case WorkerOutput::Stream::kStderr:
      return v1::Output::STDERR;
    case WorkerOutput::Stream::kResult:
      return v1::Output::RESULT;
  }
  return v1::Output::STREAM_UNSPECIFIED;
}

struct Writer {
  v1::AgentMessage message;

  void operator()(const AgentRegistration& report) {
    v1::Register* proto = message.mutable_register_();
    proto->set_protocol_min(static_cast<uint32_t>(report.protocol_min));
    proto->set_protocol_max(static_cast<uint32_t>(report.protocol_max));
    proto->set_job(report.job);
    proto->set_host(report.host);
    proto->set_incarnation(report.incarnation.value());
    proto->set_version(report.version);
    proto->set_pid(static_cast<uint32_t>(report.pid));
    for (const OfferedAddress& offered : report.addresses) {
      v1::HostAddress* address = proto->add_addresses();
      address->set_interface(ToUtf8(offered.interface));
      address->set_address(offered.address);
      address->set_prefix_length(static_cast<uint32_t>(offered.prefix_length));
    }
  }
  void operator()(const AgentHeartbeat&) { message.mutable_heartbeat(); }
  void operator()(const WorkerStarted& report) {
    *message.mutable_worker_started()->mutable_worker() = ToProto(report.worker);
    message.mutable_worker_started()->set_pid(static_cast<uint32_t>(report.pid));
  }
  void operator()(const WorkerStartFailed& report) {
    v1::WorkerStartFailed* proto = message.mutable_worker_start_failed();
    *proto->mutable_worker() = ToProto(report.worker);
    proto->set_error(static_cast<uint32_t>(report.error));
    proto->set_what(ToUtf8(report.what));
  }
  void operator()(const WorkerJoined& report) {
    v1::WorkerJoined* proto = message.mutable_worker_joined();
    *proto->mutable_worker() = ToProto(report.worker);
    proto->set_endpoint(report.endpoint);
    proto->set_after_generation(report.after.value());
  }
  void operator()(const WorkerLeft& report) {
    *message.mutable_worker_left()->mutable_worker() = ToProto(report.worker);
    message.mutable_worker_left()->set_generation(report.generation.value());
  }
  void operator()(const WorkerExited& report) {
    *message.mutable_worker_exited()->mutable_worker() = ToProto(report.worker);
    *message.mutable_worker_exited()->mutable_status() = ToProto(report.status);
    message.mutable_worker_exited()->set_out_of_memory(report.out_of_memory);
  }
  void operator()(const WorkerOutput& report) {
    v1::Output* proto = message.mutable_output();
    *proto->mutable_worker() = ToProto(report.worker);
    proto->set_stream(ToProto(report.stream));
    proto->set_data(report.data);
  }
  void operator()(const WorkerOutputEnded& report) {
    *message.mutable_output_ended()->mutable_worker() = ToProto(report.worker);
  }
  void operator()(const WorkerSaid& report) {
    v1::WorkerNotice* proto = message.mutable_worker_notice();
    *proto->mutable_worker() = ToProto(report.worker);
    proto->set_generation(report.generation.value());
    proto->set_text(ToUtf8(report.text));
  }
  void operator()(const AgentEndsItself& report) { message.mutable_ending()->set_reason(ToUtf8(report.reason)); }
};

// Where the driver is, and what it takes to talk to it there.
absl::Status TakeDriver(const v1::AgentBootstrap& proto, Bootstrap* bootstrap) {
  bootstrap->driver_addresses.assign(proto.driver_addresses().begin(), proto.driver_addresses().end());
  if (bootstrap->driver_addresses.empty()) bootstrap->driver_addresses.push_back(proto.driver_address());
  bool proves = false;
  for (const std::string& address : bootstrap->driver_addresses) {
    if (address.empty()) return Wrong("driver_addresses", "is empty, or an address in it");
    proves |= !absl::StartsWith(address, "unix-abstract:");
  }
  bootstrap->ca_certificate = proto.ca_certificate();
  bootstrap->certificate = proto.certificate();
  bootstrap->private_key = proto.private_key();
  if (!proves) return absl::OkStatus();
  if (proto.ca_certificate().empty()) return Wrong("ca_certificate", "is empty");
  if (proto.certificate().empty()) return Wrong("certificate", "is empty");
  if (proto.private_key().empty()) return Wrong("private_key", "is empty");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AgentCommand> FromProto(const v1::DriverMessage& proto) {
  switch (proto.message_case()) {
    case v1::DriverMessage::kWelcome: {
      ASSIGN_OR_RETURN(AgentCommand command, FromWelcome(proto.welcome()), std::move(_) << "welcome");
      return command;
    }
    case v1::DriverMessage::kSpawn: {
      ASSIGN_OR_RETURN(AgentCommand command, FromSpawn(proto.spawn()), std::move(_) << "spawn");
      return command;
    }
    case v1::DriverMessage::kInput: {
      ASSIGN_OR_RETURN(AgentCommand command, FromInput(proto.input()), std::move(_) << "input");
      return command;
    }
    case v1::DriverMessage::kSignal: {
      ASSIGN_OR_RETURN(AgentCommand command, FromSignal(proto.signal()), std::move(_) << "signal");
      return command;
    }
    case v1::DriverMessage::kAssignment: {
      ASSIGN_OR_RETURN(AgentCommand command, FromAssignment(proto.assignment()), std::move(_) << "assignment");
      return command;
    }
    case v1::DriverMessage::kOutputCredit: {
      ASSIGN_OR_RETURN(AgentCommand command, FromCredit(proto.output_credit()), std::move(_) << "output_credit");
      return command;
    }
    case v1::DriverMessage::kOpenRelay: {
      ASSIGN_OR_RETURN(AgentCommand command, FromOpenRelay(proto.open_relay()), std::move(_) << "open_relay");
      return command;
    }
    case v1::DriverMessage::kEnd:
      return EndAll{proto.end().reason()};
    case v1::DriverMessage::MESSAGE_NOT_SET:
      break;
  }
  return Wrong("message", "is not set, or of a kind that this version does not know");
}

absl::StatusOr<Bootstrap> FromProto(const v1::AgentBootstrap& proto) {
  if (proto.job().empty()) return Wrong("job", "is empty");
  if (proto.host().empty()) return Wrong("host", "is empty");
  if (proto.incarnation() == 0) return Wrong("incarnation", "is zero");
  // The key itself stays out of the message.
  if (proto.job_key().size() != 32) return Wrong("job_key", absl::StrCat("has ", proto.job_key().size(), " bytes"));
  Bootstrap bootstrap;
  bootstrap.job = proto.job();
  bootstrap.host = proto.host();
  bootstrap.incarnation = Incarnation(proto.incarnation());
  RETURN_IF_ERROR(TakeDriver(proto, &bootstrap));
  // Elsewhere each spawn says where its worker listens.
  if (proto.data_address().empty() && bootstrap.certificate.empty()) return Wrong("data_address", "is empty");
  bootstrap.job_key = proto.job_key();
  bootstrap.data_address = proto.data_address();
  ASSIGN_OR_RETURN(bootstrap.grace, FromProto(proto.grace()), std::move(_) << "grace");
  bootstrap.input_may_end = proto.input_may_end();
  if (proto.has_lost_after()) {
    ASSIGN_OR_RETURN(bootstrap.lost_after, FromProto(proto.lost_after()), std::move(_) << "lost_after");
  }
  return bootstrap;
}

v1::AgentMessage ToProto(const AgentReport& report) {
  Writer writer;
  std::visit(writer, report);
  return std::move(writer.message);
}

}  // namespace farandole
