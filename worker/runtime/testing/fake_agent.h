#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"

namespace farandole::testing {

// An agent and its driver in one, as a worker's library sees them: serves WorkerService and shared memory for `size`
// known workers on one host, and gives them a new generation whenever all of them have joined above the same one. Ranks
// are the order of `workers()`. Beyond that it decides nothing: it starts and ends no process, and trusts its callers.
//
// Thread-safe.
class FakeAgent {
 public:
  static absl::StatusOr<std::unique_ptr<FakeAgent>> Start(int size);
  virtual ~FakeAgent() = default;

  virtual std::string address() const = 0;  // FARANDOLE_AGENT
  virtual const std::vector<Incarnation>& workers() const = 0;

  // Whether, by `deadline`, `count` workers wait for their place; have left their generation; have sent reports.
  virtual bool AwaitJoined(int count, Instant deadline) = 0;
  virtual bool AwaitLeft(int count, Instant deadline) = 0;
  virtual std::vector<std::string> AwaitReports(int count, Instant deadline) = 0;

  // Ends as an agent that is killed does: every stream ends, nothing answers any more.
  virtual void Die() = 0;
};

}  // namespace farandole::testing
