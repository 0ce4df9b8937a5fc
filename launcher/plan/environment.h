#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "driver/core/ids.h"

namespace farandole {

// What is told to every worker of a job in the same words.
struct JobEnvironment {
  // The launcher's own environment, NAME=VALUE.
  std::vector<std::string> inherited;
  // Of the request (cli/launch_request.h): what options come to, what --env gives, and patterns of --env-deny.
  std::vector<std::string> worker_variables = {};
  std::vector<std::string> given = {};
  std::vector<std::string> denied = {};
};

// The host that a worker is on.
struct WorkerHost {
  std::string name;     // as in the host list
  bool remote = false;  // reached by ssh: some names do not travel
  // The interfaces that workers talk over; none: not known, not told.
  std::vector<std::string> interfaces = {};
  // Whether a person asked for these; else an inherited choice is kept.
  bool interfaces_chosen = false;
};

// Where the variables of workers come from: names, never values, each list sorted.
struct EnvironmentNames {
  std::vector<std::string> set;        // by the launcher, options and --env
  std::vector<std::string> inherited;  // from the launcher
  std::vector<std::string> kept_home;  // not inherited: denied, or (remote) never exported
};

// The environments of a job's workers. From the weakest to the strongest: what is inherited and not denied, what
// options set, what --env gives, and what scripts read of their place (cli/env_names.h).
//
// Bytes pass as they are. A later entry of a name replaces an earlier one; an entry without a name or without '=' is
// left out, as no program could read it; what an agent of an outer job told the launcher is left out too, and the
// folder of a function, which is the launcher's alone. To another machine functions of a shell, OLDPWD, the launcher's
// own choice of GPUs (any name with CUDA_VISIBLE_DEVICES in it) and _HOROVOD_SECRET_KEY do not travel, unless --env
// gives them.
//
// Immutable after it is made; any thread.
class WorkerEnvironments {
 public:
  explicit WorkerEnvironments(const JobEnvironment& job);

  // NAME=VALUE, sorted by name, so that the same job gives the same bytes.
  std::vector<std::string> For(const WorkerHost& host, const Placement& placement) const;

  EnvironmentNames Names(bool remote) const;

  // Whether the kernel will take each variable. Errors (InvalidArgument): one is too long, with its name and the limit,
  // never its value. `any_remote`: whether a worker is elsewhere; `any_local`: whether one is here.
  absl::Status CheckLimits(bool any_local, bool any_remote) const;

 private:
  using Variables = std::map<std::string, std::string>;
  const Variables& Base(bool remote) const { return remote ? remote_ : local_; }

  Variables local_, remote_;  // inherited, and over it what is set for all
  std::vector<std::string> set_, inherited_local_, inherited_remote_, kept_local_, kept_remote_;  // names
};

// The most bytes that Linux takes in one variable or argument: with its name, the '=' and the byte at its end.
inline constexpr size_t kMaxVariableBytes = 131072;

}  // namespace farandole
