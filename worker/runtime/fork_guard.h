#pragma once

namespace farandole {

// A child made by fork() inherits our memory but not our threads: locks may be held for ever, queues are served by
// nobody, and sockets are the parent's. So after WatchForks() every such child is marked, and whoever is asked there
// refuses before it touches anything. The mark is all that is done between fork and exec. gRPC's own
// fork handlers (GRPC_ENABLE_FORK_SUPPORT) make no difference to such a child: that variable is left as the user has
// it.

// From now on marks children of this process (and theirs). Repeatable; thread-safe.
void WatchForks();

// Whether this process is a marked child. Safe everywhere, also in a signal handler.
bool InForkedChild();

}  // namespace farandole
