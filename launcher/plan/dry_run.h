#pragma once

#include <string>
#include <vector>

#include "driver/core/driver_config.h"
#include "launcher/cli/launch_request.h"
#include "launcher/plan/environment.h"
#include "launcher/plan/launch_plan.h"

namespace farandole {

// What would be started where, as --dry-run shows it.
struct DryRunInputs {
  const LaunchRequest* request = nullptr;  // borrowed
  DriverConfig config;                     // of the request
  ResolvedHosts resolved;
  std::string working_directory;
  EnvironmentNames local_names, remote_names;
  std::vector<std::string> notes;  // in full: the request's and those of the plan
  // How many hosts the launcher connects to by itself, and how many each agent helps to reach (launch_tree.h).
  int direct_limit = 32;
  int fanout = 8;
};

// For people: sections of lines. Never a value of a variable.
//
//   4 processes on 2 hosts: python train.py
//   ...
std::string DryRunText(const DryRunInputs& inputs);

// For programs, one object:
//
//   np, command [words], working_directory, start_timeout_seconds, grace_seconds, output_directory, instance_directory
//   hosts [{name, start "local" | "ssh" | "none" without processes, user, ssh_port, slots, processes, addresses,
//           reached_by: null: from here, else a host's name}]
//   ranks [{rank, host, slot, local_rank, local_size, cross_rank, cross_size}]
//   network {interfaces [{host: null: all, wanted}], port_range null | [first, last]}
//   environment {set, inherited, kept_home, each [names] of processes here; remote {the same for other machines}}
//   settings [{option, value, origin}], notes [lines]
//
// Bytes that are no UTF-8 are replaced.
std::string DryRunJson(const DryRunInputs& inputs);

}  // namespace farandole
