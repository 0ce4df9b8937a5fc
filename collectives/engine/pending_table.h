#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/request.h"
#include "collectives/engine/wire.h"
#include "tools/base/mutex.h"

namespace farandole {

// A request that this rank has made and that has not been answered.
struct Pending {
  Request request;
  Engine::Done done;
};

// This rank's unfinished requests by name: put in by any thread, announced by the negotiation, taken out to be run or
// failed.
//
// A name is taken from Add until Finished: as long as a request runs, its name cannot be asked for again.
//
// Thread-safe. Calls no callback.
class PendingTable {
 public:
  // Takes all of `requests` or none. Errors: InvalidArgument: a name that is unfinished, or twice in `requests`; after
  // Close its status.
  absl::Status Add(std::vector<Request> requests, std::vector<Engine::Done> done) ABSL_LOCKS_EXCLUDED(mutex_);

  // How many are unfinished: not taken, or taken and running.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What was added since the last call, to be told to rank 0.
  std::vector<Announcement> TakeNew() ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes a request out to run it; its name stays taken. Nothing if there is none of this name.
  absl::optional<Pending> Take(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

  // Its run is over: the name is free.
  void Finished(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on Add gives `status` (not OK). Returns all that have not been taken.
  std::vector<Pending> Close(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, absl::optional<Pending>> requests_ ABSL_GUARDED_BY(mutex_);  // empty: runs
  std::vector<Announcement> new_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace farandole
