#include "collectives/engine/engine.h"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "collectives/engine/check_request.h"
#include "collectives/engine/coordinator.h"
#include "collectives/engine/executor.h"
#include "collectives/engine/negotiation.h"
#include "collectives/engine/pending_table.h"
#include "collectives/transport/shm/spin.h"
#include "tools/base/check.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// How long a thread that has something else to do waits for ranks that are about to come, and one that waits anyway.
constexpr absl::Duration kPatienceOfEnqueue = absl::Microseconds(5);
constexpr absl::Duration kPatienceOfAssist = absl::Microseconds(50);
// How long a thread that waits finds nothing to do before it sleeps: longer than a wake-up takes at its worst, or two
// ranks that wake each other would never find back to not sleeping.
constexpr absl::Duration kIdleOfAssist = absl::Microseconds(200);
constexpr int kLooksPerLookAtTheClock = 16;

// How long the destructor waits for an engine that nobody shut down, before it aborts it.
constexpr absl::Duration kDestructorPatience = absl::Seconds(1);

CoordinatorConfig CoordinatorConfigOf(const EngineConfig& config) {
  CoordinatorConfig coordinator;
  coordinator.fusion_threshold_bytes = config.fusion_threshold_bytes;
  coordinator.fuse_groups_apart = config.fuse_groups_apart;
  coordinator.cycle_time = config.cycle_time;
  coordinator.stall_warning = config.stall_warning;
  coordinator.stall_shutdown = config.stall_shutdown;
  return coordinator;
}

int MembersHere(const GroupSpec& spec) {
  return static_cast<int>(std::count_if(spec.members.begin(), spec.members.end(), [&](const GroupMember& member) {
    return member.host == spec.members[spec.rank].host;
  }));
}

class EngineImpl final : public Engine {
 public:
  EngineImpl(EngineConfig config, GroupSpec spec, std::unique_ptr<Communicator> communicator,
             std::unique_ptr<ControlChannel> channel)
      : spec_(spec),
        communicator_(std::move(communicator)),
        channel_(std::move(channel)),
        spin_(MembersHere(spec)),
        executor_(communicator_.get(), &pending_, config,
                  {[this](absl::Status status) { negotiation_.Fail(std::string(status.message())); },
                   [this] { channel_->Wake(); }}),
        negotiation_(CoordinatorConfigOf(config), std::move(spec), channel_.get(), &pending_, &executor_,
                     communicator_.get()),
        thread_([this] { negotiation_.Run(); }) {}

  ~EngineImpl() override {
    Shutdown(Now() + kDestructorPatience);
    thread_.join();
  }

  absl::Status Enqueue(std::vector<Request> requests, std::vector<Done> done) override {
    CHECK(!requests.empty() && requests.size() == done.size());
    for (const Request& request : requests) RETURN_IF_ERROR(CheckRequest(spec_.size(), spec_.rank, request));
    const size_t asked = requests.size();
    RETURN_IF_ERROR(pending_.Add(std::move(requests), std::move(done)));
    // Who asks for one thing after the other has something better to do than to run them one by one: the engine's own
    // thread, or one that waits, will find several that can be fused.
    const bool others_wait = pending_.size() > asked;
    if (!others_wait && negotiation_.TryAdvance()) {
      executor_.TryRunShort(kPatienceOfEnqueue);
      executor_.Kick();
    } else {
      channel_->Wake();
    }
    return absl::OkStatus();
  }

  void Assist(const std::function<bool()>& done, Instant until) override {
    SharedWaiting* const shared = channel_->shared_waiting();
    if (shared == nullptr || spin_.crowded() || done()) return;
    shared->Attend();
    Instant idle_since = Now();
    for (int i = 1; !done(); ++i) {
      negotiation_.TryAdvance();
      if (executor_.TryRunShort(kPatienceOfAssist)) {
        idle_since = Now();
      } else if (i % kLooksPerLookAtTheClock == 0 && (Now() > idle_since + kIdleOfAssist || Now() > until)) {
        break;
      }
    }
    shared->Unattend();
    executor_.Kick();
  }

  void Shutdown(Instant deadline) override {
    negotiation_.Leave();
    if (executor_.AwaitEnd(deadline)) return;
    Abort("the other ranks did not answer to this rank's shutdown in time");
    executor_.AwaitEnd(Instant::Infinite());  // bounded: an aborted communicator returns without the help of a peer
  }

  void Abort(absl::string_view reason) override { negotiation_.Abort(reason); }

 private:
  const GroupSpec spec_;
  const std::unique_ptr<Communicator> communicator_;
  const std::unique_ptr<ControlChannel> channel_;
  PendingTable pending_;
  const Spin spin_;
  Executor executor_;
  Negotiation negotiation_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Engine> Engine::Create(EngineConfig config, GroupSpec spec, std::unique_ptr<Communicator> communicator,
                                       std::unique_ptr<ControlChannel> channel) {
  return std::make_unique<EngineImpl>(config, std::move(spec), std::move(communicator), std::move(channel));
}

}  // namespace farandole
