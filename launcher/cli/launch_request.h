#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "launcher/cli/hosts.h"
#include "launcher/cli/networks.h"
#include "launcher/cli/output_template.h"

namespace farandole {

// A job whose size may change while it runs.
struct ElasticRequest {
  struct Cooldown {
    absl::Duration least, most;
  };
  int min_np = 1;                              // 1 <= min_np <= np
  absl::optional<int> max_np;                  // np <= max_np; unset: as many as there are slots
  absl::optional<int> slots_per_host;          // of hosts that are discovered without a number
  absl::Duration timeout = absl::Minutes(10);  // for min_np slots to be there, at the start and at each change
  absl::optional<int> reset_limit;             // changes of the membership at most; unset: any number
  absl::optional<Cooldown> cooldown;           // until a failed host may return; unset: as the driver decides
  std::string discovery_script;                // prints hosts; empty: the hosts of the request are all there are
};

// How hosts other than this one are reached.
struct SshOptions {
  enum class Backend { kLibssh, kOpenssh };
  Backend backend = Backend::kLibssh;
  int port = 0;                       // of hosts without one of their own; 0: as ssh decides
  std::string identity_file;          // empty: as ssh decides
  bool accept_new_host_keys = false;  // trust and remember a host that is not known yet; a changed key is never taken
};

// Both ends included; 1 <= first <= last <= 65535.
struct PortRange {
  int first = 1, last = 65535;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

enum class PlanFormat { kText, kJson };

// A job, as a person asked for it; checked as far as it can be without looking at the machine.
struct LaunchRequest {
  std::string called_as;  // "horovodrun" or "farandole run", for messages
  int np = 1;
  // At least one, with at least `np` slots together; of an elastic job at least min_np slots, or none where hosts are
  // discovered.
  std::vector<HostSpec> hosts;
  std::vector<std::string> command;  // the program and its arguments, as they are; the program is not empty
  bool verbose = false;
  absl::optional<PlanFormat> dry_run;            // show the plan, start nothing
  absl::optional<absl::Duration> start_timeout;  // unset: the driver's default
  absl::optional<absl::Duration> grace;          // unset: the driver's default
  absl::optional<ElasticRequest> elastic;

  SshOptions ssh;
  NetworkChoice networks;
  absl::optional<PortRange> port_range;  // of every listener; unset: any free port

  bool timestamps = false;
  std::string output_directory;    // --output-filename: a folder for each rank; empty: none
  std::string instance_directory;  // --output-dir: a file for each start of a worker; empty: none
  OutputTemplate output_prefix;    // without the time that `timestamps` puts before it

  // NAME=VALUE over the inherited environment: what options come to.
  std::vector<std::string> worker_variables;
  // NAME=VALUE over both: what --env gives. Values may be secret.
  std::vector<std::string> given_variables;
  // Patterns with * and ? for names that no worker inherits.
  std::vector<std::string> denied_variables;

  // Lines for the person, without the program's name: what does something else than it says, or nothing.
  std::vector<std::string> notes;
  // What was set and by whom, for --verbose and --dry-run: each option with its value and origin; no secrets.
  struct ResolvedSetting {
    std::string option, value, origin;
    friend bool operator==(const ResolvedSetting&, const ResolvedSetting&) = default;
  };
  std::vector<ResolvedSetting> settings;
};

}  // namespace farandole
