#include "worker/runtime/worker_runtime.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/clock.h"
#include "tools/base/log.h"
#include "tools/base/random_bytes.h"
#include "tools/base/status_macros.h"
#include "worker/agent/slab_client.h"
#include "worker/runtime/form_group.h"

namespace farandole {
namespace {

// An agent on the same machine answers in microseconds; one that is stopped or swapped out may take long.
constexpr absl::Duration kAgentTimeout = absl::Seconds(30);

// Forming a group waits for nobody but the same agent.
constexpr absl::Duration kFormTimeout = absl::Seconds(30);

// What was asked for by all may still be large; a member that hangs must not keep the others from ending.
constexpr absl::Duration kLeaveTimeout = absl::Seconds(30);

template <typename Wanted>
bool Asks(const std::vector<SessionAction>& actions) {
  for (const SessionAction& action : actions) {
    if (std::holds_alternative<Wanted>(action)) return true;
  }
  return false;
}

}  // namespace

struct WorkerRuntime::Membership {
  Place place;
  Generation generation;
  AgentClient* client = nullptr;  // none in a group of one; outlives the engine
  std::atomic<bool> loss_reported = false;
  std::unique_ptr<Engine> engine;  // last: its threads use the others until it has ended

  // Tells the person at the launcher about the first operation that a lost peer has failed.
  void Note(const absl::Status& status) {
    if (client == nullptr || !absl::IsUnavailable(status) || loss_reported.exchange(true)) return;
    client->Report(generation, std::string(status.message()));
  }
};

WorkerRuntime::WorkerRuntime(Lookup lookup) : lookup_(std::move(lookup)) {}

WorkerRuntime::~WorkerRuntime() { Shutdown(); }

absl::Status WorkerRuntime::Init(Instant deadline) {
  MutexLock life(&life_mutex_);
  if (membership() != nullptr) return absl::OkStatus();
  if (client_ == nullptr) {
    ASSIGN_OR_RETURN(environment_, ReadWorkerEnvironment(lookup_));
    if (environment_.agent.empty()) return InitAlone();
    RETURN_IF_ERROR(BeginJoin());
  }
  const absl::StatusOr<Assignment> assignment = AwaitAssignment(deadline);
  if (absl::IsDeadlineExceeded(assignment.status())) return assignment.status();
  const absl::Status status = assignment.ok() ? Adopt(*assignment) : assignment.status();
  if (!status.ok()) EndSession();
  return status;
}

absl::Status WorkerRuntime::InitAlone() {
  if (!environment_.foreign_launcher.empty() && !warned_of_launcher_) {
    warned_of_launcher_ = true;
    LOG(WARNING)
        << environment_.foreign_launcher
        << " started this process together with others, but each of them trains alone: Farandole takes its place "
           "from its own launcher. Start with `farandole run -np N PROGRAM` (or horovodrun) instead";
  }
  GroupSpec spec;
  spec.generation = Generation(1);
  spec.members = {GroupMember{"localhost", Incarnation(RandomId()), ""}};
  auto joined = std::make_shared<Membership>();
  joined->generation = spec.generation;
  ASSIGN_OR_RETURN(joined->engine, FormGroup(environment_, spec, nullptr, nullptr, Now() + kFormTimeout));
  MutexLock lock(&mutex_);
  membership_ = std::move(joined);
  return absl::OkStatus();
}

absl::Status WorkerRuntime::BeginJoin() {
  std::vector<SessionAction> actions;
  {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(state_.Step(JoinWanted{}, &actions));
  }
  const absl::Status status = ConnectAndJoin(std::get<AskForPlace>(actions.at(0)).after);
  if (!status.ok()) EndSession();
  return status;
}

absl::Status WorkerRuntime::ConnectAndJoin(Generation after) {
  const Instant deadline = Now() + kAgentTimeout;
  TcpListener::Options options;
  options.addresses = environment_.data_addresses;
  options.ports = environment_.ports;
  options.incarnation = environment_.incarnation;
  ASSIGN_OR_RETURN(listener_, TcpListener::Create(options), std::move(_) << "the listener for data between workers");
  ASSIGN_OR_RETURN(client_, AgentClient::Connect(environment_.agent, environment_.incarnation));
  ASSIGN_OR_RETURN(job_, client_->Join(listener_->endpoint(), after, deadline));
  listener_->Start(job_.job_key);
  slabs_ = ConnectSlabs(job_.slab_socket);
  client_->Watch(
      after, [this](Assignment assignment) { OnAssignment(std::move(assignment)); },
      [this](std::string reason) { OnAgentLost(std::move(reason)); });
  return absl::OkStatus();
}

absl::StatusOr<Assignment> WorkerRuntime::AwaitAssignment(Instant deadline) {
  MutexLock lock(&mutex_);
  changed_.AwaitUntil(&mutex_, deadline, [this] {
    mutex_.AssertHeld();
    return assigned_.has_value() || !lost_.empty() || shutdowns_ > 0;
  });
  if (shutdowns_ > 0) return absl::AbortedError("shutdown was called while init waited for the other workers");
  if (!lost_.empty()) return absl::UnavailableError(lost_);
  if (!assigned_.has_value()) {
    return absl::DeadlineExceededError(
        absl::StrCat("worker ", job_.host, "/", job_.slot,
                     " is ready, but not all other workers of the job have called init; it still waits for them"));
  }
  Assignment assignment = *std::move(assigned_);
  assigned_.reset();
  return assignment;
}

absl::Status WorkerRuntime::Adopt(const Assignment& assignment) {
  auto joined = std::make_shared<Membership>();
  joined->place = assignment.place;
  joined->generation = assignment.group.generation;
  joined->client = client_.get();
  SetLogPrefix(absl::StrCat("rank ", assignment.place.rank));
  ASSIGN_OR_RETURN(joined->engine,
                   FormGroup(environment_, assignment.group, listener_.get(), slabs_.get(), Now() + kFormTimeout),
                   std::move(_) << "generation " << joined->generation);
  MutexLock lock(&mutex_);
  if (!lost_.empty()) return absl::UnavailableError(lost_);
  membership_ = std::move(joined);
  return absl::OkStatus();
}

void WorkerRuntime::Shutdown() {
  {
    MutexLock lock(&mutex_);
    ++shutdowns_;
    changed_.NotifyAll();
  }
  MutexLock life(&life_mutex_);
  {
    MutexLock lock(&mutex_);
    --shutdowns_;
  }
  EndSession();
}

void WorkerRuntime::EndSession() {
  const Instant deadline = Now() + kLeaveTimeout;
  std::shared_ptr<Membership> leaving = membership();
  if (leaving != nullptr) leaving->engine->Shutdown(deadline);
  std::vector<SessionAction> actions;
  Generation generation;
  {
    MutexLock lock(&mutex_);
    membership_ = nullptr;
    assigned_.reset();
    actions = Step(LeaveWanted{});
    generation = state_.generation();
  }
  leaving = nullptr;
  if (Asks<LeaveGeneration>(actions)) {
    const absl::Status told = client_->Leave(generation, Now() + kAgentTimeout);
    if (!told.ok()) LOG(INFO) << told.message();
    MutexLock lock(&mutex_);
    Step(LeaveFinished{});
  }
  Disconnect();
}

void WorkerRuntime::Disconnect() {
  client_ = nullptr;  // no callback runs after this
  slabs_ = nullptr;
  listener_ = nullptr;
  job_ = {};
}

void WorkerRuntime::OnAssignment(Assignment assignment) {
  MutexLock lock(&mutex_);
  const AssignmentSeen seen{assignment.group.generation, assignment.group.rank >= 0};
  if (!Asks<AdoptGeneration>(Step(seen))) return;
  assigned_ = std::move(assignment);
  changed_.NotifyAll();
}

void WorkerRuntime::OnAgentLost(std::string reason) {
  std::shared_ptr<Membership> failed;
  {
    MutexLock lock(&mutex_);
    if (!Asks<FailSession>(Step(AgentLost{reason}))) return;
    lost_ = reason;
    failed = membership_;
    changed_.NotifyAll();
  }
  if (failed != nullptr) failed->engine->Abort(reason);
}

std::vector<SessionAction> WorkerRuntime::Step(const SessionEvent& event) {
  std::vector<SessionAction> actions;
  const absl::Status status = state_.Step(event, &actions);
  if (!status.ok()) LOG(ERROR) << "worker session: " << status.message();
  return actions;
}

std::shared_ptr<WorkerRuntime::Membership> WorkerRuntime::membership() const {
  MutexLock lock(&mutex_);
  return membership_;
}

absl::optional<Place> WorkerRuntime::place() const {
  MutexLock lock(&mutex_);
  if (membership_ == nullptr) return absl::nullopt;
  return membership_->place;
}

absl::StatusOr<std::vector<Handle>> WorkerRuntime::Enqueue(std::vector<Request> requests) {
  const std::shared_ptr<Membership> member = membership();
  if (member == nullptr) return absl::FailedPreconditionError("not initialised: call init first");
  std::vector<Handle> handles;
  std::vector<Engine::Done> done;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Handle handle = handles_.Add();
    handles.push_back(handle);
    // The engine is part of the membership and ends before it, so the bare pointer is safe.
    done.push_back([this, handle, member = member.get()](absl::Status status, Result result) {
      member->Note(status);
      handles_.Finish(handle, std::move(status), std::move(result));
    });
  }
  const absl::Status status = member->engine->Enqueue(std::move(requests), std::move(done));
  if (status.ok()) return handles;
  member->Note(status);  // the engine had ended before
  for (const Handle handle : handles) {
    handles_.Finish(handle, status, {});
    handles_.Release(handle).IgnoreError();
  }
  return status;
}

}  // namespace farandole
