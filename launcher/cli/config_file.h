#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/settings.h"

namespace farandole {

// What a --config-file says.
struct ConfigFile {
  struct Entry {
    std::string name;  // of the setting: "--cycle-time-ms"
    Setting setting;   // with "FILE, line 3: params.cycle_time_ms" as origin
  };
  std::vector<Entry> entries;
  // A line for each key that is not known, with the nearest that is. The original ignores them, so that files in use
  // have some.
  std::vector<std::string> warnings;
};

// Reads YAML with the original's sections: controller, params, autotune, timeline, stall_check, library_options,
// logging. A section that is there says also what it leaves out: autotune without `enabled` is off, stall_check without
// it is on. A key without a value is as if it were not there.
//
// Values are checked where options are (tunables.h). Errors (InvalidArgument) have file, line and column: not YAML; a
// list or a map where a value should be, or the other way round; a switch that is neither true nor false; a controller
// other than gloo and mpi; a key twice; larger than 1 MiB.
absl::StatusOr<ConfigFile> ParseConfigFile(absl::string_view path, const std::string& text);

}  // namespace farandole
