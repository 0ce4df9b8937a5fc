// What an agent reads from its standard input, behind the length. What is refused is refused with a field, in words
// that do not depend on the keys.
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "proto/convert/agent_convert.h"
#include "proto/v1/bootstrap.pb.h"
#include "tests/fuzz/input.h"
#include "tools/base/check.h"

namespace {

// The same with other secrets, as long.
farandole::v1::AgentBootstrap WithOtherSecrets(farandole::v1::AgentBootstrap proto) {
  proto.set_job_key(std::string(proto.job_key().size(), 'x'));
  proto.set_private_key(std::string(proto.private_key().size(), 'x'));
  return proto;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace farandole;  // NOLINT
  // It writes a line for each string that is not UTF-8.
  [[maybe_unused]] static const auto handler = google::protobuf::SetLogHandler(nullptr);
  v1::AgentBootstrap proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto bootstrap = FromProto(proto);
  if (bootstrap.ok()) {
    CHECK(!bootstrap->job.empty() && !bootstrap->host.empty() && bootstrap->incarnation.value() != 0) << "incomplete";
    return 0;
  }
  CHECK(absl::IsInvalidArgument(bootstrap.status())) << bootstrap.status();
  CHECK(FromProto(WithOtherSecrets(proto)).status() == bootstrap.status()) << "a secret is in an error";
  return 0;
}
