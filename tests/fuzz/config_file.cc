// --config-file. What is refused is refused with the file's name; every entry says where it stands.
#include "launcher/cli/config_file.h"

#include <string>

#include "absl/strings/match.h"
#include "tests/fuzz/input.h"
#include "tools/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace farandole;  // NOLINT
  const auto config = ParseConfigFile("job.yaml", fuzz::Input(data, size).Rest());
  if (!config.ok()) {
    CHECK(absl::IsInvalidArgument(config.status())) << config.status();
    CHECK(absl::StrContains(config.status().message(), "job.yaml")) << config.status();
    return 0;
  }
  for (const ConfigFile::Entry& entry : config->entries) {
    CHECK(absl::StartsWith(entry.name, "-")) << entry.name;
    CHECK(absl::StrContains(entry.setting.origin, "job.yaml")) << entry.setting.origin;
  }
  return 0;
}
