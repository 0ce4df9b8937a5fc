#include "worker/runtime/worker_runtime.h"

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

// A root is named by its rank in the whole group.
absl::Status ToSetRank(const Membership::Set& set, int process_set, Request& request) {
  const bool names_one = request.kind == OperationKind::kBroadcast || request.kind == OperationKind::kSend ||
                         request.kind == OperationKind::kReceive;
  if (process_set == 0 || !names_one) return absl::OkStatus();
  const absl::optional<Rank> place = PlaceIn(set.ranks, request.root);
  if (!place.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", request.name, ": rank ", request.root,
                                                   " is not in process set ", process_set, " of ranks ",
                                                   RanksText(set.ranks)));
  }
  request.root = *place;
  return absl::OkStatus();
}

// What the ranks said, one after the other.
absl::Status CheckSame(const Result& result, const std::string& own) {
  absl::string_view left(reinterpret_cast<const char*>(result.output.data()), result.output.size());
  for (size_t rank = 0; rank < result.rows.size(); ++rank) {
    const absl::string_view text = left.substr(0, result.rows[rank]);
    left.remove_prefix(result.rows[rank]);
    if (text == own) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the ranks do not want the same: rank ", rank, " wants to ", text, ", this one to ", own));
  }
  return absl::OkStatus();
}

}  // namespace

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
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   FormGroup(environment_, spec, nullptr, nullptr, Now() + kFormTimeout));
  auto joined = std::make_shared<Membership>(spec, Place(), nullptr, engines_->Count(std::move(engine)));
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
  SetLogPrefix(absl::StrCat("rank ", assignment.place.rank));
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   FormGroup(environment_, assignment.group, listener_.get(), slabs_.get(), Now() + kFormTimeout),
                   std::move(_) << "generation " << assignment.group.generation);
  auto joined = std::make_shared<Membership>(assignment.group, assignment.place, client_.get(),
                                             engines_->Count(std::move(engine)));
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
  if (leaving != nullptr) leaving->Shutdown(deadline);
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
  engines_->AwaitNone();
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
  if (failed != nullptr) failed->Abort(reason);
}

std::vector<SessionAction> WorkerRuntime::Step(const SessionEvent& event) {
  std::vector<SessionAction> actions;
  const absl::Status status = state_.Step(event, &actions);
  if (!status.ok()) LOG(ERROR) << "worker session: " << status.message();
  return actions;
}

std::shared_ptr<Membership> WorkerRuntime::membership() const {
  MutexLock lock(&mutex_);
  return membership_;
}

absl::optional<Place> WorkerRuntime::place() const {
  MutexLock lock(&mutex_);
  if (membership_ == nullptr) return absl::nullopt;
  return membership_->place();
}

absl::StatusOr<std::vector<Handle>> WorkerRuntime::Enqueue(std::vector<Request> requests, int process_set) {
  const std::shared_ptr<Membership> member = membership();
  if (member == nullptr) return absl::FailedPreconditionError("not initialised: call init first");
  ASSIGN_OR_RETURN(const Membership::Set set, member->Find(process_set));
  for (Request& request : requests) RETURN_IF_ERROR(ToSetRank(set, process_set, request));
  std::vector<Handle> handles;
  std::vector<Engine::Done> done;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Handle handle = handles_.Add(set.engine);
    handles.push_back(handle);
    // The engines are part of the membership and end before it, so the bare pointer is safe.
    done.push_back([this, handle, member = member.get(), ranks = process_set == 0 ? std::vector<Rank>() : set.ranks](
                       absl::Status status, Result result) {
      member->Note(status);
      if (result.last_joined >= 0 && !ranks.empty()) result.last_joined = ranks[result.last_joined];
      handles_.Finish(handle, std::move(status), std::move(result));
    });
  }
  const absl::Status status = set.engine->Enqueue(std::move(requests), std::move(done));
  if (status.ok()) return handles;
  member->Note(status);  // the engine had ended before
  for (const Handle handle : handles) {
    handles_.Finish(handle, status, {});
    handles_.Release(handle).IgnoreError();
  }
  return status;
}

absl::StatusOr<int> WorkerRuntime::AddProcessSet(std::vector<Rank> ranks, Instant deadline) {
  const std::shared_ptr<Membership> member = membership();
  if (member == nullptr) return absl::FailedPreconditionError("not initialised: call init first");
  ASSIGN_OR_RETURN(ranks, member->CheckNew(std::move(ranks)));
  RETURN_IF_ERROR(AgreeOn(absl::StrCat("add the process set of ranks ", RanksText(ranks)), deadline));
  MutexLock life(&life_mutex_);
  if (membership() != member) return absl::AbortedError("shutdown was called meanwhile");
  absl::optional<GroupSpec> group;
  const int id = member->BeginSet(std::move(ranks), &group);
  if (!group.has_value()) return id;
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   FormGroup(environment_, *group, listener_.get(), slabs_.get(), Now() + kFormTimeout),
                   std::move(_) << "process set " << id);
  member->JoinSet(id, engines_->Count(std::move(engine)));
  return id;
}

absl::Status WorkerRuntime::RemoveProcessSet(int id, Instant deadline) {
  const std::shared_ptr<Membership> member = membership();
  if (member == nullptr) return absl::FailedPreconditionError("not initialised: call init first");
  RETURN_IF_ERROR(member->CheckRemovable(id));
  RETURN_IF_ERROR(AgreeOn(absl::StrCat("remove process set ", id), deadline));
  member->RemoveSet(id, Now() + kLeaveTimeout);
  return absl::OkStatus();
}

// All ranks say what they want to change, and see whether they want the same. One call begins it, and others may go on
// waiting for it.
absl::Status WorkerRuntime::AgreeOn(const std::string& text, Instant deadline) {
  std::shared_ptr<Change> change;
  {
    MutexLock lock(&mutex_);
    if (change_ == nullptr) change_ = std::make_shared<Change>(Change{text, 0});
    change = change_;
  }
  if (change->text != text) {
    return absl::FailedPreconditionError(absl::StrCat("this rank still waits for the others, to ", change->text));
  }
  if (change->handle == 0) {
    Request request;
    request.kind = OperationKind::kAllGather;
    request.name = "process_set.change";
    request.dtype = DType::kUint8;
    request.shape = {static_cast<int64_t>(change->text.size())};
    request.input = change->text.data();
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    const absl::StatusOr<std::vector<Handle>> begun = Enqueue(std::move(requests), 0);
    if (!begun.ok()) return EndChange(begun.status());
    change->handle = begun->front();
  }
  const absl::Status ended = handles_.Wait(change->handle, deadline);
  if (absl::IsDeadlineExceeded(ended)) return ended;
  absl::Status agreed = ended;
  if (const auto result = handles_.ResultOf(change->handle); result.ok()) agreed = CheckSame(**result, text);
  handles_.Release(change->handle).IgnoreError();
  return EndChange(agreed);
}

absl::Status WorkerRuntime::EndChange(absl::Status status) {
  MutexLock lock(&mutex_);
  change_ = nullptr;
  return status;
}

}  // namespace farandole
