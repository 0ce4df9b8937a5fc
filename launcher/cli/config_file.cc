#include "launcher/cli/config_file.h"

#include <exception>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "launcher/cli/options.h"
#include "launcher/cli/quote.h"
#include "tools/base/status_macros.h"
#include "yaml-cpp/yaml.h"

namespace farandole {
namespace {

constexpr size_t kMaxSize = 1 << 20;

struct Key {
  absl::string_view section;  // empty: at the top
  absl::string_view name;
  absl::string_view option;
  bool is_switch = false;
};

constexpr Key kKeys[] = {
    {"", "controller", "--controller"},
    {"params", "fusion_threshold_mb", "--fusion-threshold-mb"},
    {"params", "cycle_time_ms", "--cycle-time-ms"},
    {"params", "cache_capacity", "--cache-capacity"},
    {"params", "hierarchical_allreduce", "--hierarchical-allreduce", true},
    {"params", "hierarchical_allgather", "--hierarchical-allgather", true},
    {"params", "torus_allreduce", "--torus-allreduce", true},
    {"autotune", "enabled", "--autotune", true},
    {"autotune", "log_file", "--autotune-log-file"},
    {"autotune", "warmup_samples", "--autotune-warmup-samples"},
    {"autotune", "steps_per_sample", "--autotune-steps-per-sample"},
    {"autotune", "bayes_opt_max_samples", "--autotune-bayes-opt-max-samples"},
    {"autotune", "gaussian_process_noise", "--autotune-gaussian-process-noise"},
    {"timeline", "filename", "--timeline-filename"},
    {"timeline", "mark_cycles", "--timeline-mark-cycles", true},
    {"stall_check", "enabled", "--stall-check", true},
    {"stall_check", "warning_time_seconds", "--stall-check-warning-time-seconds"},
    {"stall_check", "shutdown_time_seconds", "--stall-check-shutdown-time-seconds"},
    {"library_options", "mpi_threads_disable", "--mpi-threads-disable", true},
    {"library_options", "num_nccl_streams", "--num-nccl-streams"},
    {"library_options", "thread_affinity", "--thread-affinity"},
    {"library_options", "gloo_timeout_seconds", "--gloo-timeout-seconds"},
    {"logging", "level", "--log-level"},
    {"logging", "with_timestamp", "--log-with-timestamp", true},
};

// What a section says by being there.
struct SectionDefault {
  absl::string_view section, option, value;
};
constexpr SectionDefault kSectionDefaults[] = {{"autotune", "--autotune", "0"}, {"stall_check", "--stall-check", "1"}};

// The names of the keys of a section, or at the top with those of the sections.
std::vector<absl::string_view> NamesIn(absl::string_view section) {
  std::vector<absl::string_view> names;
  for (const Key& key : kKeys) {
    if (key.section == section) names.push_back(key.name);
    if (section.empty() && (names.empty() || names.back() != key.section) && !key.section.empty()) {
      names.push_back(key.section);
    }
  }
  return names;
}

const Key* FindKey(absl::string_view section, absl::string_view name) {
  for (const Key& key : kKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

bool IsSection(absl::string_view name) {
  for (const Key& key : kKeys) {
    if (!key.section.empty() && key.section == name) return true;
  }
  return false;
}

class Reader {
 public:
  explicit Reader(absl::string_view path) : path_(path) {}

  absl::StatusOr<ConfigFile> Read(const YAML::Node& top) {
    if (top.IsNull()) return std::move(file_);
    RETURN_IF_ERROR(ReadMap("", top));
    return std::move(file_);
  }

 private:
  std::string Line(const YAML::Node& node) const { return absl::StrCat(path_, ", line ", node.Mark().line + 1); }

  absl::Status Error(const YAML::Node& node, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(Line(node), ", column ", node.Mark().column + 1, ": ", what));
  }

  static std::string Full(absl::string_view section, absl::string_view name) {
    return absl::StrCat(section, section.empty() ? "" : ".", name);
  }

  absl::Status ReadMap(absl::string_view section, const YAML::Node& map) {
    if (!map.IsMap()) {
      return Error(map, section.empty() ? "expected sections, such as \"params:\""
                                        : absl::StrCat(section, " is a section; expected keys under it"));
    }
    std::map<std::string, int> lines;
    for (const auto& pair : map) {
      if (!pair.first.IsScalar()) return Error(pair.first, "a key must be a name");
      const std::string& name = pair.first.Scalar();
      const auto [before, first] = lines.emplace(name, pair.first.Mark().line + 1);
      if (!first) return Error(pair.first, absl::StrCat(Quote(name), " is here twice (line ", before->second, ")"));
      RETURN_IF_ERROR(ReadPair(section, name, pair.first, pair.second));
    }
    return absl::OkStatus();
  }

  absl::Status ReadPair(absl::string_view section, const std::string& name, const YAML::Node& key,
                        const YAML::Node& value) {
    if (section.empty() && IsSection(name)) return value.IsNull() ? absl::OkStatus() : ReadSection(name, key, value);
    const Key* const known = FindKey(section, name);
    if (known == nullptr) {
      const std::string nearest = NearestWord(name, NamesIn(section));
      file_.warnings.push_back(absl::StrCat(Line(key), ": there is no key ", Quote(Full(section, name)), "; ignored",
                                            nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)")));
      return absl::OkStatus();
    }
    if (value.IsNull()) return absl::OkStatus();
    if (!value.IsScalar()) return Error(value, absl::StrCat(Full(section, name), " takes one value"));
    return AddValue(*known, key, value);
  }

  absl::Status ReadSection(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    RETURN_IF_ERROR(ReadMap(name, value));
    for (const SectionDefault& fallback : kSectionDefaults) {
      if (fallback.section != name) continue;
      for (const ConfigFile::Entry& entry : file_.entries) {
        if (entry.name == fallback.option) return absl::OkStatus();
      }
      Add(fallback.option, std::string(fallback.value), absl::StrCat(Line(key), ": ", name));
    }
    return absl::OkStatus();
  }

  absl::Status AddValue(const Key& key, const YAML::Node& where, const YAML::Node& value) {
    const std::string name = Full(key.section, key.name);
    std::string text = value.Scalar();
    if (text.empty()) return absl::OkStatus();
    if (key.is_switch) {
      bool on = text == "1";
      if (text != "0" && text != "1" && !YAML::convert<bool>::decode(value, on)) {
        return Error(value, absl::StrCat(name, " ", Quote(text), " is neither true nor false"));
      }
      text = on ? "1" : "0";
    }
    if (key.option == "--controller" && text != "gloo" && text != "mpi") {
      return Error(value, absl::StrCat(name, " ", Quote(text), " is not one of gloo, mpi"));
    }
    Add(key.option, std::move(text), absl::StrCat(Line(where), ": ", name));
    return absl::OkStatus();
  }

  void Add(absl::string_view option, std::string value, std::string origin) {
    file_.entries.push_back({std::string(option), {std::move(value), std::move(origin)}});
  }

  const absl::string_view path_;
  ConfigFile file_;
};

}  // namespace

absl::StatusOr<ConfigFile> ParseConfigFile(absl::string_view path, const std::string& text) {
  if (text.size() > kMaxSize) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": larger than ", kMaxSize, " bytes; is it a config file?"));
  }
  try {
    return Reader(path).Read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ", line ", error.mark.line + 1, ", column ",
                                                   error.mark.column + 1, ": not YAML: ", error.msg));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not YAML: ", error.what()));
  }
}

}  // namespace farandole
