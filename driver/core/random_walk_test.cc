// Drives the core through random lives: agents and workers that do as they like, and a network that delays, repeats and
// reorders what they say, and brings up the past.

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "driver/core/actions.h"
#include "driver/core/driver_config.h"
#include "driver/core/driver_core.h"
#include "driver/core/driver_view.h"
#include "driver/core/events.h"
#include "driver/core/host_step.h"
#include "driver/core/ids.h"
#include "gtest/gtest.h"
#include "tools/base/ids.h"
#include "tools/base/instant.h"
#include "tools/base/prng.h"
#include "tools/base/testing/status_matchers.h"

namespace farandole {
namespace {

DriverConfig DrawConfig(Prng* prng) {
  DriverConfig config;
  int slots = 0;
  for (uint64_t h = 0; h <= prng->Below(3); ++h) {
    config.hosts.push_back({std::string(1, static_cast<char>('a' + h)), 1 + static_cast<int>(prng->Below(3))});
    slots += config.hosts.back().slots;
  }
  config.np = 1 + static_cast<int>(prng->Below(slots));
  if (prng->Chance(1, 4)) config.grace = absl::ZeroDuration();
  if (prng->Chance(1, 2)) config.join_timeout = absl::Seconds(20);
  return config;
}

class Walk {
 public:
  explicit Walk(uint64_t seed) : prng_(seed), config_(DrawConfig(&prng_)), core_(config_, seed) {
    // Each kind of trouble is switched off in some walks, so that others get far enough.
    failures_ = prng_.Chance(1, 2);
    disorder_ = prng_.Chance(1, 2);
    interrupts_ = prng_.Chance(1, 4);
    silence_ = prng_.Chance(1, 4);
  }

  void Run() {
    Call([&](Actions* actions) { core_.Start(now_, actions); });
    for (int i = 0; i < 400 && !over(); ++i) Move();
    EndEverything();
    ASSERT_TRUE(over()) << "nothing is left and the job does not end\n" << trace_;
    const DriverView last = core_.View();
    EXPECT_EQ(last.phase, exit_code_ == 0 ? JobPhase::kSucceeded : JobPhase::kFailed);
  }

  const std::string& trace() const { return trace_; }
  JobPhase phase() const { return core_.View().phase; }
  uint64_t generation() const { return core_.View().generation.value(); }

 private:
  bool over() const { return ends_ > 0; }

  template <typename Function>
  void Call(Function function) {
    const Generation before = core_.View().generation;
    Actions actions;
    function(&actions);
    for (const Action& action : actions) {
      ASSERT_EQ(ends_, 0) << "after the end: " << ToString(action) << "\n" << trace_;
      absl::StrAppend(&trace_, now_.nanos(), " ", ToString(action), "\n");
      std::visit([this](const auto& one) { this->Do(one); }, action);
    }
    ASSERT_OK(core_.CheckInvariants()) << trace_;
    ASSERT_GE(core_.View().generation, before);
    Actions nothing;
    core_.Tick(now_, &nothing);
    ASSERT_TRUE(nothing.empty()) << "nothing has changed, but: " << ToString(nothing[0]) << "\n" << trace_;
  }

  void Step(const Event& event) {
    absl::StrAppend(&trace_, now_.nanos(), " event ", event.index(), "\n");
    Call([&](Actions* actions) { core_.Step(now_, event, actions); });
  }

  // The world does what it is asked.
  void Do(const StartAgent& action) { agents_[action.host] = action.incarnation; }
  void Do(const SpawnWorker& action) {
    ASSERT_TRUE(spawned_.insert(action.worker).second) << "spawned twice";
    workers_[action.worker] = Generation();
  }
  void Do(const SendAssignment& action) {
    ASSERT_EQ(action.members.size(), config_.np);
    for (const AssignedMember& member : action.members) {
      ASSERT_EQ(known_gone_.count(member.worker), 0) << "a member that is known to be gone";
      if (workers_.count(member.worker) > 0) workers_[member.worker] = action.generation;
    }
  }
  void Do(const SignalWorker& action) {
    if (workers_.count(action.worker) == 0) return;
    if (action.signal == SIGKILL || prng_.Chance(1, 2)) End(action.worker, ExitStatus{0, action.signal});
  }
  void Do(const EndAgent& action) {
    ASSERT_TRUE(action.force || NoWorkerOn(action.host)) << "ended before its workers";
    if (action.force || prng_.Chance(3, 4)) Send(AgentEnded{action.host, action.incarnation});
    if (action.force) EndHost(action.host);
  }
  void Do(const EndJob& action) {
    ++ends_;
    exit_code_ = action.verdict.exit_code;
    ASSERT_EQ(action.verdict.reason.empty(), exit_code_ == 0);
    ASSERT_TRUE(exit_code_ != 0 || workers_.empty()) << "success with a worker left";
  }

  bool NoWorkerOn(const std::string& host) const {
    return std::none_of(workers_.begin(), workers_.end(), [&](const auto& one) { return one.first.slot.host == host; });
  }
  void End(WorkerId worker, ExitStatus status) {
    workers_.erase(worker);
    Send(WorkerExited{worker, status});
  }
  void EndHost(const std::string& host) {
    for (auto it = workers_.begin(); it != workers_.end();) {
      it = it->first.slot.host == host ? workers_.erase(it) : std::next(it);
    }
  }
  void Send(Event event) {
    if (disorder_ && prng_.Chance(1, 8)) in_flight_.push_back(event);
    in_flight_.push_back(std::move(event));
  }

  void Move() {
    switch (prng_.Below(6)) {
      case 0:
        return PassTime();
      case 1:
        return SomeAgentSpeaks();
      case 2:
        if (disorder_ && prng_.Chance(1, 3)) return Step(FromThePast());
        return SomeWorkerActs();
      case 3:
        return SomeWorkerActs();
      default:
        return Deliver();
    }
  }

  void PassTime() {
    now_ = now_ + absl::Milliseconds(prng_.Chance(1, 20) ? prng_.Below(20'000) : prng_.Below(200));
    if (!silence_ || prng_.Chance(9, 10)) {
      for (const auto& [host, incarnation] : agents_) Step(AgentHeard{host, incarnation});
    }
    Call([&](Actions* actions) { core_.Tick(now_, actions); });
    if (prng_.Chance(1, 50)) Step(OutputHeld{});
    if (interrupts_ && prng_.Chance(1, 20)) Step(Interrupted{prng_.Chance(1, 2) ? SIGINT : SIGTERM});
  }

  void SomeAgentSpeaks() {
    if (agents_.empty()) return;
    const auto& [host, incarnation] = *std::next(agents_.begin(), prng_.Below(agents_.size()));
    if (failures_ && prng_.Chance(1, 50)) {
      EndHost(host);
      Send(AgentFailed{host, incarnation, "the walk wants it"});
    } else if (prng_.Chance(1, 3)) {
      Send(
          AgentProgress{host, incarnation, static_cast<HostStep>(prng_.Below(6)), prng_.Chance(1, 2) ? "not yet" : ""});
    } else {
      Send(AgentReady{host, incarnation, {}});
    }
  }

  void SomeWorkerActs() {
    if (workers_.empty()) return;
    const auto& [id, generation] = *std::next(workers_.begin(), prng_.Below(workers_.size()));
    const WorkerId worker = id;
    switch (prng_.Below(12)) {
      case 0:
        return End(worker, failures_ && prng_.Chance(1, 3) ? ExitStatus{1, 0} : ExitStatus{});
      case 1:
        return Send(WorkerStarted{worker, 1});
      case 2:
        if (!failures_ || prng_.Chance(9, 10)) return;
        workers_.erase(worker);
        return Send(WorkerStartFailed{worker, 2, "program"});
      case 4:
        return Send(WorkerSawLoss{worker, generation});
      case 3:
        if (prng_.Chance(1, 3)) return Send(WorkerLeft{worker, generation});
        return;
      default:
        return Send(WorkerJoined{worker, "e", generation});
    }
  }

  void Deliver() {
    if (in_flight_.empty()) return;
    const size_t which = disorder_ ? prng_.Below(in_flight_.size()) : 0;
    const Event event = in_flight_[which];
    in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(which));
    past_.push_back(event);
    if (const auto* exited = std::get_if<WorkerExited>(&event)) known_gone_.insert(exited->worker);
    Step(event);
  }

  // Something that was true once, or is said by somebody who is not of this job.
  Event FromThePast() {
    if (past_.empty() || prng_.Chance(1, 4)) {
      const SlotId slot{prng_.Chance(1, 2) ? "a" : "nowhere", static_cast<int>(prng_.Below(4))};
      return WorkerExited{WorkerId{slot, Incarnation(1 + prng_.Below(100))}, ExitStatus{7, 0}};
    }
    return past_[prng_.Below(past_.size())];
  }

  // All processes end and their last words arrive; then only time is left to pass.
  void EndEverything() {
    const std::set<WorkerId> left = [&] {
      std::set<WorkerId> ids;
      for (const auto& [id, generation] : workers_) ids.insert(id);
      return ids;
    }();
    for (const WorkerId& id : left) {
      if (workers_.count(id) > 0) End(id, ExitStatus{});
    }
    for (int i = 0; i < 100'000 && !over(); ++i) {
      if (!in_flight_.empty()) {
        Deliver();
        continue;
      }
      const Instant next = core_.NextDeadline();
      ASSERT_FALSE(next.is_infinite()) << "the job is not over and waits for nothing\n" << trace_;
      now_ = std::max(now_, next);
      Call([&](Actions* actions) { core_.Tick(now_, actions); });
    }
  }

  Prng prng_;
  DriverConfig config_;
  DriverCore core_;
  Instant now_ = Instant::FromNanos(1);
  bool failures_, disorder_, interrupts_, silence_;
  std::map<std::string, Incarnation> agents_;
  std::map<WorkerId, Generation> workers_;  // with a process, and the newest generation each knows
  std::set<WorkerId> spawned_, known_gone_;
  std::vector<Event> in_flight_, past_;
  int ends_ = 0;
  int exit_code_ = -1;
  std::string trace_;
};

TEST(RandomWalk, KeepsItsInvariantsAndAlwaysEnds) {
  std::map<JobPhase, int> ends;
  int with_a_second_generation = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Walk walk(seed);
    walk.Run();
    if (::testing::Test::HasFatalFailure()) return;
    ++ends[walk.phase()];
    if (walk.generation() >= 2) ++with_a_second_generation;
  }
  // The walks are worth something only if they get everywhere.
  EXPECT_GT(ends[JobPhase::kSucceeded], 100);
  EXPECT_GT(ends[JobPhase::kFailed], 100);
  EXPECT_GT(with_a_second_generation, 50);
}

TEST(RandomWalk, TheSameSeedGivesTheSameTrace) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Walk one(seed), two(seed);
    one.Run();
    two.Run();
    EXPECT_EQ(one.trace(), two.trace());
  }
}

}  // namespace
}  // namespace farandole
