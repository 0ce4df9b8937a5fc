#include "launcher/cli/request.h"

#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/config_file.h"
#include "launcher/cli/elastic.h"
#include "launcher/cli/env_names.h"
#include "launcher/cli/numbers.h"
#include "launcher/cli/options.h"
#include "launcher/cli/output_template.h"
#include "launcher/cli/quote.h"
#include "launcher/cli/settings.h"
#include "launcher/cli/tunables.h"
#include "launcher/cli/variables.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr int kMostSeconds = 10'000'000;  // four months
constexpr int kMostPort = 65535;

absl::Status Wrong(const Setting& setting, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(setting.origin, " ", Quote(setting.value), what));
}

// Builds the request from the settings, a part after the other.
class Builder {
 public:
  Builder(const CommandLineInputs& inputs, absl::string_view called_as) : inputs_(inputs) {
    request_.called_as = std::string(called_as);
  }

  absl::StatusOr<LaunchRequest> Build(NormalisedWords words) {
    ASSIGN_OR_RETURN(settings_, Settings::FromWords(words));
    RETURN_IF_ERROR(CheckCommand(words));
    RETURN_IF_ERROR(AddConfigFile());
    AddEnvironment();
    RETURN_IF_ERROR(ReadNp());
    ASSIGN_OR_RETURN(request_.elastic, ParseElastic(settings_, request_.np, &request_.notes));
    RETURN_IF_ERROR(ReadHosts());
    RETURN_IF_ERROR(CheckSlots());
    RETURN_IF_ERROR(ReadTimes());
    RETURN_IF_ERROR(ReadNetworks());
    RETURN_IF_ERROR(ReadSsh());
    RETURN_IF_ERROR(ReadOutput());
    RETURN_IF_ERROR(ReadVariables());
    RETURN_IF_ERROR(ReadDryRun());
    request_.verbose = settings_.IsOn("--verbose");
    request_.command = std::move(words.command);
    NoteOldNames();
    ListSettings();
    return std::move(request_);
  }

 private:
  absl::Status CheckCommand(const NormalisedWords& words) const {
    if (words.command.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no program to run. For example: ", request_.called_as, " -np 4 python train.py"));
    }
    const std::string& program = words.command[0];
    if (program.empty()) return absl::InvalidArgumentError("the program's name is empty");
    if (settings_.Has("--hosts") && !words.after_separator && LooksLikeHosts(program)) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quote(program),
                       " was taken as the program, and looks like a host: separate hosts by commas and no "
                       "blanks, as in -H a:1,b:1 (or write -- before a program of this name)"));
    }
    return absl::OkStatus();
  }

  absl::Status AddConfigFile() {
    const Setting* const file = settings_.Find("--config-file");
    if (file == nullptr) return absl::OkStatus();
    const std::string path = file->value;
    ASSIGN_OR_RETURN(const std::string text, inputs_.read_file(path), std::move(_) << "--config-file");
    ASSIGN_OR_RETURN(ConfigFile config, ParseConfigFile(path, text));
    for (ConfigFile::Entry& entry : config.entries) settings_.AddDefault(entry.name, std::move(entry.setting));
    for (std::string& warning : config.warnings) request_.notes.push_back(std::move(warning));
    return absl::OkStatus();
  }

  void AddEnvironment() {
    AddVariable("--start-timeout", env::kStartTimeout);
    const bool elastic = settings_.Has("--min-num-proc") || settings_.Has("--host-discovery-script");
    if (elastic) AddVariable("--elastic-timeout", env::kElasticTimeout);
  }

  void AddVariable(absl::string_view option, const char* name) {
    absl::optional<std::string> value = inputs_.environment(name);
    if (!value || value->empty()) return;
    settings_.AddDefault(option, {*std::move(value), absl::StrCat("the variable ", name)});
  }

  absl::Status ReadNp() {
    const Setting* const np = settings_.Find("--num-proc");
    if (np == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "-np is missing: how many processes? For example: ", request_.called_as, " -np 4 python train.py"));
    }
    ASSIGN_OR_RETURN(request_.np, WholeNumber(*np, 1, kMaxSlots));
    return absl::OkStatus();
  }

  absl::Status ReadHosts() {
    const Setting* given = nullptr;
    for (const char* name : {"--hosts", "--hostfile", "--host-discovery-script"}) {
      const Setting* const setting = settings_.Find(name);
      if (setting == nullptr) continue;
      if (given != nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(given->origin, " and ", setting->origin,
                                                       " are two answers to one question; give one of them"));
      }
      given = setting;
    }
    if (given == nullptr) return NoHosts();
    if (settings_.Has("--host-discovery-script")) return absl::OkStatus();
    if (settings_.Has("--hosts")) {
      ASSIGN_OR_RETURN(request_.hosts, ParseHostList("-H", given->value));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::string text, inputs_.read_file(given->value), std::move(_) << "--hostfile");
    ASSIGN_OR_RETURN(request_.hosts, ParseHostfile(given->value, text));
    return absl::OkStatus();
  }

  absl::Status NoHosts() {
    if (request_.elastic) {
      return absl::InvalidArgumentError(
          "an elastic job needs hosts: --host-discovery-script FILE prints those there are, -H or --hostfile names "
          "them");
    }
    const absl::optional<std::string> lsf = inputs_.environment(env::kLsfJob);
    if (lsf && !lsf->empty()) {
      request_.notes.push_back(
          "this is a job of LSF, whose hosts are not asked for here; -H or --hostfile names others than this one");
    }
    request_.hosts = {{"localhost", request_.np}};
    return absl::OkStatus();
  }

  absl::Status CheckSlots() const {
    if (settings_.Has("--host-discovery-script")) return absl::OkStatus();
    const int np = request_.np;
    const std::vector<HostSpec>& hosts = request_.hosts;
    int64_t slots = 0;
    for (const HostSpec& host : hosts) slots += host.slots;
    if (np <= slots) return absl::OkStatus();
    std::string hint = "give the hosts more slots (HOST:N), add hosts, or ask for less with -np";
    if (hosts.size() == 1) {
      HostSpec enough = hosts[0];
      enough.slots = np;
      hint = absl::StrCat("write ", DescribeHosts({enough}), ", or a smaller -np");
    }
    return absl::InvalidArgumentError(absl::StrCat("asked for ", np, np == 1 ? " process" : " processes", ", there ",
                                                   slots == 1 ? "is 1 slot" : absl::StrCat("are ", slots, " slots"),
                                                   ": ", DescribeHosts(hosts), "; ", hint));
  }

  absl::Status ReadTimes() {
    if (const Setting* setting = settings_.Find("--start-timeout")) {
      ASSIGN_OR_RETURN(const int64_t seconds, WholeNumber(*setting, 1, kMostSeconds));
      request_.start_timeout = absl::Seconds(seconds);
    }
    if (const Setting* setting = settings_.Find("--grace")) {
      ASSIGN_OR_RETURN(const double seconds, RealNumber(*setting, 0, kMostSeconds));
      request_.grace = absl::Seconds(seconds);
    }
    return absl::OkStatus();
  }

  absl::Status ReadNetworks() {
    ASSIGN_OR_RETURN(request_.networks, ParseNetworkChoice(settings_.All("--network-interface")));
    std::set<absl::string_view> names;
    for (const HostSpec& host : request_.hosts) names.insert(host.name);
    for (const NetworkChoice::Rule& rule : request_.networks.rules) {
      if (rule.host.empty() || names.empty() || names.count(rule.host) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--network-interface ", Quote(rule.host + "=" + rule.wanted),
                       ": this host is not in the list of hosts: ", DescribeHosts(request_.hosts)));
    }
    return ReadPortRange();
  }

  absl::Status ReadPortRange() {
    const Setting* const setting = settings_.Find("--port-range");
    if (setting == nullptr) return absl::OkStatus();
    const std::vector<std::string> ends = absl::StrSplit(setting->value, '-');
    const auto port = [&](const std::string& text) { return WholeNumber({text, setting->origin}, 1, kMostPort); };
    if (ends.size() != 2 || !port(ends[0]).ok() || !port(ends[1]).ok()) {
      return Wrong(*setting, ": not a range of ports; write 9000-9100, with 1 to 65535");
    }
    request_.port_range = PortRange{static_cast<int>(*port(ends[0])), static_cast<int>(*port(ends[1]))};
    if (request_.port_range->first <= request_.port_range->last) return absl::OkStatus();
    return Wrong(*setting, absl::StrCat(": ends before it begins; write ", ends[1], "-", ends[0]));
  }

  absl::Status ReadSsh() {
    SshOptions& ssh = request_.ssh;
    if (const Setting* setting = settings_.Find("--ssh-port")) {
      ASSIGN_OR_RETURN(ssh.port, WholeNumber(*setting, 1, kMostPort));
    }
    ssh.identity_file = settings_.Value("--ssh-identity-file");
    ssh.accept_new_host_keys = settings_.IsOn("--ssh-accept-new-host-keys");
    const Setting* const backend = settings_.Find("--ssh-backend");
    if (backend == nullptr || backend->value == "libssh") return absl::OkStatus();
    if (backend->value != "openssh") return Wrong(*backend, " is not one of libssh, openssh");
    ssh.backend = SshOptions::Backend::kOpenssh;
    return absl::OkStatus();
  }

  absl::Status ReadOutput() {
    request_.timestamps = settings_.IsOn("--prefix-output-with-timestamp");
    request_.output_directory = settings_.Value("--output-filename");
    request_.instance_directory = settings_.Value("--output-dir");
    const Setting* const prefix = settings_.Find("--output-prefix");
    if (prefix == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(request_.output_prefix, OutputTemplate::Parse(prefix->value),
                     std::move(_) << prefix->origin << " " << Quote(prefix->value));
    return absl::OkStatus();
  }

  absl::Status ReadVariables() {
    ASSIGN_OR_RETURN(TuningResult tuning, TranslateTunables(settings_));
    request_.worker_variables = std::move(tuning.variables);
    for (std::string& note : tuning.notes) request_.notes.push_back(std::move(note));
    ASSIGN_OR_RETURN(request_.given_variables, ParseGivenVariables(settings_.All("--env"), inputs_.environment));
    ASSIGN_OR_RETURN(request_.denied_variables, ParseDeniedVariables(settings_.All("--env-deny")));
    return absl::OkStatus();
  }

  absl::Status ReadDryRun() {
    PlanFormat format = PlanFormat::kText;
    if (const Setting* setting = settings_.Find("--format")) {
      if (setting->value == "json") {
        format = PlanFormat::kJson;
      } else if (setting->value != "text") {
        return Wrong(*setting, " is not one of text, json");
      }
      if (!settings_.IsOn("--dry-run")) request_.notes.push_back("--format: means nothing without --dry-run; ignored");
    }
    if (settings_.IsOn("--dry-run")) request_.dry_run = format;
    return absl::OkStatus();
  }

  void NoteOldNames() {
    const Setting* const log_time = settings_.Find("--log-with-timestamp");
    if (log_time == nullptr) return;
    if (log_time->origin == "--log-hide-timestamp") {
      request_.notes.push_back("--log-hide-timestamp is the old name of --log-without-timestamp");
    }
    if (log_time->origin == "--no-log-hide-timestamp") {
      request_.notes.push_back("--no-log-hide-timestamp is the old name of --log-with-timestamp");
    }
  }

  void ListSettings() {
    std::set<absl::string_view> listed;
    for (const OptionSpec& option : AllOptions()) {
      // What --env gives may be secret; its names are shown with the environment.
      if (option.Canonical() == "--env" || !listed.insert(option.Setting()).second) continue;
      for (const Setting& setting : settings_.All(option.Setting())) {
        request_.settings.push_back({std::string(option.Setting()), setting.value, setting.origin});
      }
    }
  }

  const CommandLineInputs& inputs_;
  Settings settings_;
  LaunchRequest request_;
};

}  // namespace

absl::StatusOr<LaunchRequest> BuildRequest(NormalisedWords words, const CommandLineInputs& inputs,
                                           absl::string_view called_as) {
  return Builder(inputs, called_as).Build(std::move(words));
}

}  // namespace farandole
