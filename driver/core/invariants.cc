// The rules that hold after every call, by the numbers of driver/README.md.

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "driver/core/core_state.h"

namespace farandole {
namespace {

template <typename... Parts>
absl::Status Broken(int number, const Parts&... parts) {
  return absl::InternalError(absl::StrCat("invariant ", number, ": ", parts...));
}

using Workers = std::vector<WorkerRecord>;

std::string NameOf(const WorkerRecord& worker) {
  return absl::StrCat("worker ", worker.id.slot.host, "/", worker.id.slot.slot);
}

absl::Status CheckPlacements(const Workers& workers, int np) {
  if (static_cast<int>(workers.size()) != np) return Broken(1, workers.size(), " workers instead of ", np);
  std::map<std::string, std::set<int>> local_ranks;
  for (int rank = 0; rank < np; ++rank) {
    const Placement& placement = workers[rank].placement;
    if (placement.rank != rank || placement.size != np) {
      return Broken(1, NameOf(workers[rank]), " has rank ", placement.rank, " of ", placement.size, " at place ", rank);
    }
    if (!local_ranks[workers[rank].id.slot.host].insert(placement.local_rank).second) {
      return Broken(1, NameOf(workers[rank]), " has a local rank that another worker of its host has");
    }
  }
  for (const WorkerRecord& worker : workers) {
    const std::set<int>& of_host = local_ranks[worker.id.slot.host];
    if (*of_host.begin() != 0 || *of_host.rbegin() + 1 != static_cast<int>(of_host.size()) ||
        worker.placement.local_size != static_cast<int>(of_host.size())) {
      return Broken(1, "the local ranks of host ", worker.id.slot.host, " are not dense");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGenerations(const Workers& workers, Generation newest) {
  for (const WorkerRecord& worker : workers) {
    // A static job's generations have all workers as members: each has been in the newest one.
    if (worker.generation != newest) {
      return Broken(2, NameOf(worker), " knows generation ", worker.generation.value(), ", the job ", newest.value());
    }
    if (worker.state == WorkerState::kRunning && worker.generation == Generation()) {
      return Broken(7, NameOf(worker), " runs in a generation that was never given out");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckIdentities(const Workers& workers) {
  std::set<SlotId> slots;
  std::set<Incarnation> incarnations;
  for (const WorkerRecord& worker : workers) {
    if (worker.id.incarnation == Incarnation()) return Broken(3, NameOf(worker), " has no incarnation");
    if (!slots.insert(worker.id.slot).second) return Broken(3, NameOf(worker), " shares its slot");
    if (!incarnations.insert(worker.id.incarnation).second) return Broken(3, NameOf(worker), " shares its incarnation");
  }
  return absl::OkStatus();
}

absl::Status CheckOutcomes(const Workers& workers, const absl::optional<Verdict>& verdict) {
  int first_failures = 0;
  for (const WorkerRecord& worker : workers) {
    const bool gone = worker.state == WorkerState::kGone;
    if (gone != (worker.outcome != Outcome::kNone))
      return Broken(8, NameOf(worker), " has an outcome too early or none");
    const bool failed = worker.outcome == Outcome::kFirstFailure || worker.outcome == Outcome::kFollowOn ||
                        worker.outcome == Outcome::kLost;
    if (worker.outcome == Outcome::kFinished && !worker.exit.success()) {
      return Broken(8, NameOf(worker), " counts as finished and did not exit 0");
    }
    if (worker.outcome == Outcome::kFirstFailure) ++first_failures;
    if (failed && worker.spawned && !verdict) return Broken(5, NameOf(worker), " has failed and the job goes on");
    if (verdict && verdict->exit_code == 0 && worker.outcome != Outcome::kFinished) {
      return Broken(8, "the job succeeds, but ", NameOf(worker), " has not finished");
    }
    if (!verdict && worker.told_to_end) return Broken(8, NameOf(worker), " was told to end while the job goes on");
  }
  if (first_failures > 1) return Broken(8, "two first failures");
  if (verdict && verdict->has_first_failure != (first_failures == 1)) return Broken(8, "verdict without its failure");
  return absl::OkStatus();
}

}  // namespace

absl::Status DriverCore::State::CheckInvariants() const {
  if (absl::Status status = CheckPlacements(workers.all(), config.np); !status.ok()) return status;
  if (absl::Status status = CheckGenerations(workers.all(), generation); !status.ok()) return status;
  if (absl::Status status = CheckIdentities(workers.all()); !status.ok()) return status;
  if (absl::Status status = CheckOutcomes(workers.all(), verdict); !status.ok()) return status;
  for (const WorkerRecord& worker : workers.all()) {
    if (!worker.live()) continue;
    if (phase == JobPhase::kWaiting) return Broken(3, NameOf(worker), " was started before all agents were ready");
    const AgentRecord* agent = agents.FindHost(worker.id.slot.host);
    if (agent == nullptr || agent->state != AgentState::kReady)
      return Broken(3, NameOf(worker), " lives without its agent");
  }
  if (ending() == (phase != JobPhase::kEnding && !over()))
    return Broken(8, "phase ", ToString(phase), " and verdict differ");
  if (over() && !agents.All(AgentState::kGone)) return Broken(8, "the job is over and an agent is left");
  if (over() && !NextDeadline().is_infinite()) return Broken(9, "the job is over and something is waited for");
  return absl::OkStatus();
}

}  // namespace farandole
