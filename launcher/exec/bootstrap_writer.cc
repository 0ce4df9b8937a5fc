#include "launcher/exec/bootstrap_writer.h"

#include <cstdint>

#include "google/protobuf/duration.pb.h"
#include "proto/v1/bootstrap.pb.h"

namespace farandole {
namespace {

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  const int64_t nanos = absl::ToInt64Nanoseconds(duration);
  proto.set_seconds(nanos / 1'000'000'000);
  proto.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return proto;
}

}  // namespace

std::string BootstrapMessage(const AgentStart& start, const BootstrapOptions& options) {
  v1::AgentBootstrap message;
  message.set_job(start.job);
  message.set_host(start.host);
  message.set_incarnation(start.incarnation.value());
  message.set_job_key(start.job_key);
  message.set_data_address(options.data_address);
  *message.mutable_grace() = ToProto(options.grace);
  message.set_input_may_end(options.input_may_end);
  if (options.driver_addresses.empty()) {
    message.set_driver_address(start.local_address);
  } else {
    for (const std::string& address : options.driver_addresses) message.add_driver_addresses(address);
    message.set_ca_certificate(start.credentials.ca_pem);
    message.set_certificate(start.credentials.certificate_pem);
    message.set_private_key(start.credentials.private_key_pem);
    if (options.lost_after != absl::InfiniteDuration()) *message.mutable_lost_after() = ToProto(options.lost_after);
  }
  const std::string body = message.SerializeAsString();
  const auto size = static_cast<uint32_t>(body.size());
  std::string framed;
  for (const int shift : {24, 16, 8, 0}) framed += static_cast<char>(size >> shift & 0xff);
  return framed + body;
}

}  // namespace farandole
