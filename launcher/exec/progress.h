#pragma once

#include <string>

#include "driver/core/driver_view.h"

namespace farandole {

// The one line that a person sees while a job starts: "hosts 1/1  agents 1/1  workers 3/4", and while a host is not
// ready where it stands: "  (b: connect: Connection refused, attempt 3)". Hosts: reached, and
// willing to talk to us; agents: called back; workers: their process runs, or has run.
std::string ProgressText(const DriverView& view);

// Whether nothing is left to wait for: every worker was started, or the job is ending.
bool IsStarted(const DriverView& view);

}  // namespace farandole
