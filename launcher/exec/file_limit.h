#pragma once

#include <sys/types.h>

namespace farandole {

// A launcher of many hosts needs more descriptors than the soft limit that most systems begin with (1024): one or two
// for each connection.

// Raises this process's soft limit to the hard one. Once, before any agent is started.
void RaiseFileLimit();

// Gives a child the limit that this process began with: programs that a user starts should find what they find without
// us.
void GiveOriginalFileLimit(pid_t child);

}  // namespace farandole
