#pragma once

#include <string>

#include "driver/core/driver_view.h"

namespace farandole {

// The one line that a person sees while a job starts: "hosts 1/1  agents 1/1  workers 3/4". Hosts: an agent was started
// there; agents: connected; workers: their process runs, or has run.
std::string ProgressText(const DriverView& view);

// Whether nothing is left to wait for: every worker was started, or the job is ending.
bool IsStarted(const DriverView& view);

}  // namespace farandole
