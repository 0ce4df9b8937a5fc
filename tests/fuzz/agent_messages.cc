// What agent and driver say to each other, by the first byte: to the driver at first (0), to the driver later (1), to
// the agent (2). What is refused is refused with the field.
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "proto/convert/agent_convert.h"
#include "proto/convert/driver_convert.h"
#include "proto/v1/agent_service.pb.h"
#include "tests/fuzz/input.h"
#include "tools/base/check.h"

namespace farandole::fuzz {
namespace {

template <typename Result>
void CheckRefusal(const Result& result) {
  CHECK(result.ok() || (absl::IsInvalidArgument(result.status()) && !result.status().message().empty()))
      << result.status();
}

}  // namespace
}  // namespace farandole::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace farandole;  // NOLINT
  // It writes a line for each string that is not UTF-8.
  [[maybe_unused]] static const auto handler = google::protobuf::SetLogHandler(nullptr);
  fuzz::Input input(data, size);
  const int kind = input.Byte() % 3;
  const std::string bytes = input.Rest();
  if (kind == 2) {
    v1::DriverMessage message;
    if (message.ParseFromString(bytes)) fuzz::CheckRefusal(FromProto(message));
    return 0;
  }
  v1::AgentMessage message;
  if (!message.ParseFromString(bytes)) return 0;
  if (kind == 0) {
    fuzz::CheckRefusal(HelloFromProto(message));
  } else {
    fuzz::CheckRefusal(FromProto(message, AgentIdentity{"a", Incarnation(7)}));
  }
  return 0;
}
