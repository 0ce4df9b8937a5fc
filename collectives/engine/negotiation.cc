#include "collectives/engine/negotiation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/clock.h"
#include "tools/base/log.h"

namespace farandole {
namespace {

// How long the last messages may take on their way when the group ends.
constexpr absl::Duration kFlush = absl::Seconds(2);

}  // namespace

Negotiation::Negotiation(CoordinatorConfig config, GroupSpec spec, ControlChannel* channel, PendingTable* pending,
                         Executor* executor, Communicator* communicator)
    : spec_(spec),
      channel_(channel),
      pending_(pending),
      executor_(executor),
      communicator_(communicator),
      coordinator_(config, std::move(spec)) {}

void Negotiation::Run() {
  while (!closed_) {
    CloseAborted();
    if (closed_) break;
    SendNews();
    if (is_coordinator()) Distribute();
    if (closed_) break;
    Handle(channel_->Receive(is_coordinator() ? coordinator_.NextDeadline() : Instant::Infinite()));
  }
  channel_->Close(Now() + kFlush);
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

void Negotiation::Distribute() {
  ResponseList list = coordinator_.Take();
  if (list.empty()) return;
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
      if (is_coordinator()) return coordinator_.Lost(event.from, event.message);
      return Close(absl::UnavailableError(absl::StrCat(Describe(spec_, event.from), " was lost: ", event.message)));
    case ControlChannel::Event::kWoken:
      return;
    case ControlChannel::Event::kTimeout:
      if (!is_coordinator()) return;
      for (const std::string& line : coordinator_.Stalls(Now())) LOG(WARNING) << line;
      return;
  }
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
    Operation operation;
    for (const std::string& name : response.names) {
      absl::optional<Pending> pending = pending_->Take(name);
      if (!pending.has_value()) {
        return Close(
            absl::InternalError(absl::StrCat("rank 0 sequenced ", name, ", which this rank has not asked for")));
      }
      operation.requests.push_back(*std::move(pending));
    }
    operation.response = std::move(response);
    executor_->Run(std::move(operation));
  }
  if (list.closed != absl::StatusCode::kOk) Close(absl::Status(list.closed, list.closed_reason));
}

void Negotiation::Close(absl::Status status) {
  if (closed_) return;
  closed_ = true;
  // A group that was left in order still runs what was sequenced; any other is over where it stands.
  if (!absl::IsAborted(status)) communicator_->Abort(status.message());
  executor_->Finish(std::move(status));
}

}  // namespace farandole
