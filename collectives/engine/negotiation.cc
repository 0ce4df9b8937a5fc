#include "collectives/engine/negotiation.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "collectives/engine/request.h"
#include "tools/base/clock.h"
#include "tools/base/log.h"

namespace farandole {
namespace {

// How long the last messages may take on their way when the group ends.
constexpr absl::Duration kFlush = absl::Seconds(2);

// How many events rank 0 takes in before it answers.
constexpr int kEventsMax = 1024;

// For what is between two ranks: this rank's end of it.
OperationKind OwnKind(const Response& response, Rank rank) {
  const bool receives =
      response.kind == OperationKind::kSend && response.first_dims.size() == 2 && response.first_dims[1] == rank;
  return receives ? OperationKind::kReceive : response.kind;
}

// Whether rank 0 speaks of what this rank has asked for: what is run relies on it.
bool Fits(const Response& response, const Request& request, Rank rank, int size) {
  if (OwnKind(response, rank) != request.kind) return false;
  if (request.kind == OperationKind::kAllReduce) return response.dtype == request.dtype && response.op == request.op;
  if (response.names.size() != 1) return false;
  if (request.kind != OperationKind::kAllGather) return true;
  return static_cast<int>(response.first_dims.size()) == size && !request.shape.empty() &&
         response.first_dims[rank] == request.shape[0] &&
         GatheredBytes(request.shape, request.dtype, response.first_dims).has_value();
}

// What this rank does in an operation that it has not asked for, since it has joined: it gives nothing, and wants
// nothing.
Operation JoinedOperation(Response response, Rank rank) {
  Operation operation;
  operation.joined = true;
  for (size_t i = 0; i < response.names.size(); ++i) {
    Request request;
    request.kind = response.kind;
    request.name = response.names[i];
    request.dtype = response.dtype;
    request.op = response.op;
    request.root = response.root;
    request.shape = response.shapes[i];
    const bool gives_rows = response.kind == OperationKind::kAllGather || response.kind == OperationKind::kAllToAll;
    if (gives_rows && !request.shape.empty()) request.shape[0] = 0;
    operation.requests.push_back({std::move(request), nullptr});
  }
  operation.response = std::move(response);
  return operation;
}

}  // namespace

Negotiation::Negotiation(CoordinatorConfig config, GroupSpec spec, ControlChannel* channel, PendingTable* pending,
                         Executor* executor, Communicator* communicator)
    : spec_(spec),
      channel_(channel),
      pending_(pending),
      executor_(executor),
      communicator_(communicator),
      shared_(channel->shared_waiting()),
      coordinator_(config, std::move(spec)) {}

void Negotiation::Run() {
  while (true) {
    Instant deadline;
    {
      MutexLock lock(&work_);
      Advance();
      if (closed_) break;
      sleeps_until_ = deadline = NextDeadline();
      if (shared_ == nullptr) {
        executor_->Kick();
        Handle(channel_->Receive(deadline));
      }
    }
    executor_->Kick();
    if (shared_ != nullptr) shared_->Wait(deadline);
  }
  executor_->Kick();
  channel_->Close(Now() + kFlush);
}

bool Negotiation::TryAdvance() {
  if (shared_ == nullptr || !work_.TryLock()) return false;
  if (!closed_) Advance();
  const Instant deadline = closed_ ? Instant::Infinite() : NextDeadline();
  const bool sleeps_too_long = deadline < sleeps_until_;
  if (sleeps_too_long) sleeps_until_ = deadline;
  work_.Unlock();
  if (sleeps_too_long) channel_->Wake();
  return true;
}

// What has come already is heard before anything is answered: what becomes ready by it is fused. And a wake-up is heard
// before what it is for is looked at.
void Negotiation::Advance() {
  if (shared_ != nullptr || (is_coordinator() && spec_.size() > 1)) HandleWhatWaits();
  CloseAborted();
  if (closed_) return;
  SendNews();
  if (closed_) return;
  if (is_coordinator()) {
    WarnOfStalls();
    Distribute();
  }
}

void Negotiation::WarnOfStalls() {
  if (Now() < coordinator_.NextDeadline()) return;
  for (const std::string& line : coordinator_.Stalls(Now())) LOG(WARNING) << line;
}

Instant Negotiation::NextDeadline() const {
  if (!is_coordinator()) return Instant::Infinite();
  // What waits for room is woken by the executor.
  const bool collects = coordinator_.has_news() && Now() < coordinator_.TakeAt();
  return collects ? std::min(coordinator_.TakeAt(), coordinator_.NextDeadline()) : coordinator_.NextDeadline();
}

void Negotiation::Leave() {
  {
    MutexLock lock(&mutex_);
    leaving_ = true;
  }
  channel_->Wake();
}

void Negotiation::Fail(std::string why) {
  {
    MutexLock lock(&mutex_);
    if (failure_.empty()) failure_ = std::move(why);
  }
  channel_->Wake();
}

void Negotiation::Abort(absl::string_view reason) {
  {
    MutexLock lock(&mutex_);
    if (!aborted_.has_value()) aborted_ = std::string(reason);
  }
  communicator_->Abort(reason);
  channel_->Wake();
}

void Negotiation::CloseAborted() {
  absl::optional<std::string> aborted;
  {
    MutexLock lock(&mutex_);
    aborted = aborted_;
  }
  if (aborted.has_value()) Close(absl::UnavailableError(*aborted));
}

void Negotiation::SendNews() {
  RequestList list;
  list.requests = pending_->TakeNew();
  {
    MutexLock lock(&mutex_);
    list.leaving = leaving_ && !leave_sent_;
    if (!failure_sent_) list.failure = failure_;
  }
  if (list.empty()) return;
  leave_sent_ |= list.leaving;
  failure_sent_ |= !list.failure.empty();
  if (is_coordinator()) {
    coordinator_.Add(Now(), 0, std::move(list));
  } else if (absl::Status status = channel_->Send(0, Encode(list)); !status.ok()) {
    Close(status);
  }
}

void Negotiation::HandleWhatWaits() {
  for (int i = 0; i < kEventsMax && !closed_; ++i) {
    ControlChannel::Event event = channel_->Receive(Instant());
    if (event.kind == ControlChannel::Event::kTimeout) return;
    Handle(std::move(event));
  }
}

void Negotiation::Distribute() {
  // While there is enough to do, what becomes ready is collected, and fused: the executor wakes this thread.
  if (!coordinator_.has_news() || Now() < coordinator_.TakeAt()) return;
  if (!coordinator_.closed() && !executor_->HasRoom()) return;
  ResponseList list = coordinator_.Take();
  const std::string bytes = Encode(list);
  for (Rank rank = 1; rank < spec_.size(); ++rank) {
    // A list that is too long for a message is our bug to answer for; the peers see the link end.
    if (absl::Status status = channel_->Send(rank, bytes); !status.ok()) return Close(status);
  }
  Obey(std::move(list));
}

void Negotiation::Handle(ControlChannel::Event event) {
  switch (event.kind) {
    case ControlChannel::Event::kMessage:
      return HandleMessage(event.from, event.message);
    case ControlChannel::Event::kPeerLost:
      return HandleLoss(event.from, event.message);
    case ControlChannel::Event::kWoken:
      return;
    case ControlChannel::Event::kTimeout:
      return;  // Advance looks what is due
  }
}

void Negotiation::HandleLoss(Rank peer, absl::string_view how) {
  const std::string who = Describe(spec_, peer);
  how = absl::StripPrefix(how, absl::StrCat("lost ", who, ": "));  // a channel may have named it already
  if (is_coordinator()) return coordinator_.Lost(peer, std::string(how));
  Close(absl::UnavailableError(absl::StrCat(who, " was lost: ", how)));
}

void Negotiation::HandleMessage(Rank from, const std::string& message) {
  if (is_coordinator()) {
    absl::StatusOr<RequestList> list = DecodeRequestList(message);
    if (!list.ok()) return coordinator_.Lost(from, std::string(list.status().message()));
    return coordinator_.Add(Now(), from, *std::move(list));
  }
  absl::StatusOr<ResponseList> list = DecodeResponseList(message);
  if (!list.ok()) {
    return Close(absl::UnavailableError(absl::StrCat(Describe(spec_, from), ": ", list.status().message())));
  }
  Obey(*std::move(list));
}

void Negotiation::Obey(ResponseList list) {
  for (Response& response : list.responses) {
    if (absl::Status status = Start(std::move(response)); !status.ok()) return Close(std::move(status));
  }
  if (list.closed != absl::StatusCode::kOk) Close(absl::Status(list.closed, list.closed_reason));
}

// An error is rank 0's: the requests that were taken fail with it as well.
absl::Status Negotiation::Start(Response response) {
  const auto is_own = [this](int64_t rank) { return rank == spec_.rank; };
  const uint64_t expected = ++last_sequence_;
  if (response.sequence != expected) {
    return absl::InternalError(absl::StrCat("rank 0 sequenced operation ", response.sequence, " after ", expected - 1));
  }
  if (!response.refusal.empty() && absl::c_none_of(response.refused, is_own)) return absl::OkStatus();
  const bool between_others =
      response.refusal.empty() && response.kind == OperationKind::kSend && absl::c_none_of(response.first_dims, is_own);
  if (between_others) return absl::OkStatus();
  if (absl::c_any_of(response.joined, is_own)) {
    executor_->Run(JoinedOperation(std::move(response), spec_.rank));
    return absl::OkStatus();
  }
  Operation operation;
  absl::Status broken;
  for (const std::string& name : response.names) {
    absl::optional<Pending> pending = pending_->Take(name);
    const bool fits = pending.has_value() &&
                      (!response.refusal.empty() || Fits(response, pending->request, spec_.rank, spec_.size()));
    if (!fits)
      broken = absl::InternalError(
          absl::StrCat("rank 0 sequenced ", Name(response.kind), " ", name, ", which this rank has not asked for"));
    if (pending.has_value()) operation.requests.push_back(*std::move(pending));
  }
  operation.error = broken;
  if (broken.ok() && !response.refusal.empty()) operation.error = absl::FailedPreconditionError(response.refusal);
  operation.response = std::move(response);
  executor_->Run(std::move(operation));
  return broken;
}

void Negotiation::Close(absl::Status status) {
  if (closed_) return;
  closed_ = true;
  // A group that was left in order still runs what was sequenced; any other is over where it stands.
  if (!absl::IsAborted(status)) communicator_->Abort(status.message());
  executor_->Finish(std::move(status));
  if (shared_ != nullptr) channel_->Wake();  // Run's thread, if this is another one
}

}  // namespace farandole
