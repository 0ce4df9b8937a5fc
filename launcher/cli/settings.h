#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/normalise.h"

namespace farandole {

// A value that somebody gave, and where, as it is named in messages.
struct Setting {
  std::string value;   // of a switch "1" or "0", or what it chooses
  std::string origin;  // "--grace"; "c.yaml, line 3: params.cycle_time_ms"; "the variable HOROVOD_START_TIMEOUT"
};

// What was asked for, by the canonical name of the option that asks ("--cycle-time-ms"), wherever it comes from. The
// sources are added in the order of their weight: an option of the command line wins over the config file, and that
// over the environment.
class Settings {
 public:
  Settings() = default;

  // Errors (InvalidArgument): two switches that contradict each other.
  static absl::StatusOr<Settings> FromWords(const NormalisedWords& words);

  // Adds a value from a source of less weight; without effect where there is one.
  void AddDefault(absl::string_view name, Setting setting);

  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
  // The value that counts, or nullptr.
  const Setting* Find(absl::string_view name) const;
  // The same; empty if there is none.
  std::string Value(absl::string_view name) const;
  // Whether a switch is on; one that was not given is not.
  bool IsOn(absl::string_view name) const { return Value(name) == "1"; }
  // Every value, in the order given, of an option that adds up.
  std::vector<Setting> All(absl::string_view name) const;

 private:
  std::map<std::string, std::vector<Setting>> values_;
};

}  // namespace farandole
