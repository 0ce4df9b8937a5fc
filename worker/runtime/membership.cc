#include "worker/runtime/membership.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace farandole {

Membership::Membership(GroupSpec spec, Place place, AgentClient* client, std::shared_ptr<Engine> engine)
    : spec_(std::move(spec)), place_(place), client_(client), table_(spec_.size()) {
  engines_[0] = std::move(engine);
}

// The engines end here, while all that their callbacks use is still there.
Membership::~Membership() {
  std::map<int, std::shared_ptr<Engine>> engines;
  {
    MutexLock lock(&mutex_);
    engines = std::move(engines_);
  }
}

absl::StatusOr<Membership::Set> Membership::Find(int id) const {
  MutexLock lock(&mutex_);
  const ProcessSetTable::Set* const set = table_.Find(id);
  if (set == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no process set ", id));
  const auto engine = engines_.find(id);
  if (engine == engines_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", place_.rank, " is not in process set ", id, " of ranks ", RanksText(set->ranks)));
  }
  return Set{set->ranks, engine->second};
}

std::vector<Rank> Membership::RanksOf(int id) const {
  MutexLock lock(&mutex_);
  const ProcessSetTable::Set* const set = table_.Find(id);
  return set == nullptr ? std::vector<Rank>() : set->ranks;
}

std::vector<int> Membership::ids() const {
  MutexLock lock(&mutex_);
  return table_.ids();
}

absl::StatusOr<std::vector<Rank>> Membership::CheckNew(std::vector<Rank> ranks) const {
  MutexLock lock(&mutex_);
  return table_.Check(std::move(ranks));
}

absl::Status Membership::CheckRemovable(int id) const {
  MutexLock lock(&mutex_);
  return table_.CheckRemovable(id);
}

int Membership::BeginSet(std::vector<Rank> ranks, absl::optional<GroupSpec>* group) {
  MutexLock lock(&mutex_);
  const absl::optional<Rank> own = PlaceIn(ranks, spec_.rank);
  const int id = table_.Add(std::move(ranks));
  if (!own.has_value()) return id;
  const ProcessSetTable::Set& set = *table_.Find(id);
  GroupSpec spec;
  spec.generation = spec_.generation;
  spec.group = set.group;
  spec.rank = *own;
  for (const Rank rank : set.ranks) spec.members.push_back(spec_.members[rank]);
  *group = std::move(spec);
  return id;
}

void Membership::JoinSet(int id, std::shared_ptr<Engine> engine) {
  MutexLock lock(&mutex_);
  engines_[id] = std::move(engine);
}

void Membership::RemoveSet(int id, Instant deadline) {
  std::shared_ptr<Engine> leaving;
  {
    MutexLock lock(&mutex_);
    table_.Remove(id);
    const auto engine = engines_.find(id);
    if (engine == engines_.end()) return;
    leaving = std::move(engine->second);
    engines_.erase(engine);
  }
  leaving->Shutdown(deadline);
}

std::vector<std::shared_ptr<Engine>> Membership::EnginesLastFirst() const {
  MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<Engine>> engines;
  for (auto it = engines_.rbegin(); it != engines_.rend(); ++it) engines.push_back(it->second);
  return engines;
}

void Membership::Shutdown(Instant deadline) {
  for (const auto& engine : EnginesLastFirst()) engine->Shutdown(deadline);
}

void Membership::Abort(absl::string_view reason) {
  for (const auto& engine : EnginesLastFirst()) engine->Abort(reason);
}

void Membership::Note(const absl::Status& status) {
  if (client_ == nullptr || !absl::IsUnavailable(status) || loss_reported_.exchange(true)) return;
  client_->Report(spec_.generation, std::string(status.message()));
}

}  // namespace farandole
