#include "driver/core/driver_core.h"

#include <utility>

#include "driver/core/core_state.h"
#include "driver/core/rank_assignment.h"
#include "tools/base/check.h"
#include "tools/base/prng.h"

namespace farandole {
namespace {

Incarnation DrawIncarnation(Prng* prng) {
  uint64_t value = 0;
  while (value == 0) value = prng->Next();
  return Incarnation(value);
}

DriverView::Worker ViewOf(const WorkerRecord& worker) {
  DriverView::Worker view;
  view.id = worker.id;
  view.state = worker.state;
  view.placement = worker.placement;
  view.process_started = worker.process_started;
  view.joined = worker.joined;
  view.endpoint = worker.endpoint;
  view.lost = worker.outcome == Outcome::kLost;
  view.exit = worker.exit;
  return view;
}

}  // namespace

DriverCore::State::State(DriverConfig the_config, uint64_t seed) : config(std::move(the_config)) {
  CHECK(config.Validate().empty()) << config.Validate().front();
  Prng prng(seed);
  const std::vector<RankedSlot> ranked = AssignRanks(config.hosts, config.np);
  for (const RankedSlot& slot : ranked) {
    if (agents.FindHost(slot.slot.host) != nullptr) continue;
    AgentRecord agent;
    agent.host = slot.slot.host;
    agent.incarnation = DrawIncarnation(&prng);
    agents.Add(std::move(agent));
  }
  for (const RankedSlot& slot : ranked) {
    WorkerRecord worker;
    worker.id = WorkerId{slot.slot, DrawIncarnation(&prng)};
    worker.placement = slot.placement;
    workers.Add(std::move(worker));
  }
}

DriverCore::DriverCore(DriverConfig config, uint64_t seed) : state_(std::make_unique<State>(std::move(config), seed)) {}

DriverCore::~DriverCore() = default;

void DriverCore::Start(Instant now, Actions* actions) {
  CHECK(!state_->started) << "Start was called twice";
  state_->started = true;
  state_->now = now;
  state_->Begin(actions);
}

void DriverCore::Step(Instant now, const Event& event, Actions* actions) {
  CHECK(state_->started) << "Step before Start";
  state_->Advance(now);
  state_->Apply(event);
  state_->Reconcile(actions);
}

void DriverCore::Tick(Instant now, Actions* actions) {
  CHECK(state_->started) << "Tick before Start";
  state_->Advance(now);
  state_->Reconcile(actions);
}

Instant DriverCore::NextDeadline() const { return state_->NextDeadline(); }

absl::Status DriverCore::CheckInvariants() const { return state_->CheckInvariants(); }

DriverView DriverCore::View() const {
  DriverView view;
  view.phase = state_->phase;
  view.generation = state_->generation;
  for (const AgentRecord& agent : state_->agents.all()) {
    view.agents.push_back({agent.host, agent.incarnation, agent.state, agent.step, agent.note});
  }
  for (const WorkerRecord& worker : state_->workers.all()) view.workers.push_back(ViewOf(worker));
  view.stale_dropped = state_->stale_dropped;
  return view;
}

}  // namespace farandole
