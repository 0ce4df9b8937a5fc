#pragma once

#include <string>

#include "launcher/cli/launch_request.h"
#include "launcher/interrupts.h"
#include "launcher/job_plan.h"

namespace farandole {

// Runs a planned job from its first process to its last line, and returns the exit code. `agent_program` is the path of
// the agent's program here. When it returns nothing of the job is left, as far as that can be known.
int RunJob(const LaunchRequest& request, const JobPlan& plan, const std::string& agent_program, Interrupts* interrupts);

}  // namespace farandole
