#pragma once

namespace farandole {

// Puts a guardian above the agent: forks, and returns in the child, which goes on as the agent. The parent is the
// guardian. It does nothing but wait for the agent; passes SIGTERM on to it, kills it on SIGUSR1 (it may be frozen);
// and when the agent has ended, however it has, kills all that descends from it and ends with its exit code (128 +
// signal for a signal). So an agent that is killed leaves nothing behind on a host where no launcher is above it,
// sessions of their own and grandchildren included. If the guardian is killed instead, the agent gets SIGTERM and ends
// in order; only if both are killed at once is there nobody to look after grandchildren (workers themselves go with the
// agent, by the kernel's word).
//
// Standard input is the agent's alone; the guardian keeps standard error open for its own last line.
//
// Called first in main(), before there is any other thread. Ends the process with 1 and a line on stderr if there can
// be no child.
void StandGuard();

}  // namespace farandole
