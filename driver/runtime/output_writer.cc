#include "driver/runtime/output_writer.h"

#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/types/optional.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"

namespace farandole {
namespace {

// After HurryUp(): for a sink that does take what it is given.
constexpr absl::Duration kLastPatience = absl::Seconds(1);

struct Item {
  AgentIdentity from;
  int rank = 0;
  std::variant<OutputPiece, OutputEnd> what;

  int64_t bytes() const {
    const auto* piece = std::get_if<OutputPiece>(&what);
    return piece == nullptr ? 0 : static_cast<int64_t>(piece->data.size());
  }
};

}  // namespace

// Shared with the thread, which may stay behind in a call of the sink.
struct OutputWriter::Shared {
  OutputSink* sink = nullptr;
  int64_t credit_step = 0;
  ReturnCredit return_credit;
  std::thread thread;

  mutable Mutex mutex;
  CondVar changed;
  std::map<WorkerId, int> ranks ABSL_GUARDED_BY(mutex);
  std::deque<Item> items ABSL_GUARDED_BY(mutex);
  absl::optional<Instant> in_sink_since ABSL_GUARDED_BY(mutex);
  bool returning_credit ABSL_GUARDED_BY(mutex) = false;
  std::map<AgentIdentity, int64_t> owed ABSL_GUARDED_BY(mutex);  // written, and credit not given back
  bool hurry ABSL_GUARDED_BY(mutex) = false;
  bool closed ABSL_GUARDED_BY(mutex) = false;
  bool abandoned ABSL_GUARDED_BY(mutex) = false;  // the writer is gone, and whoever gave us `return_credit`

  bool idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return items.empty() && !in_sink_since && !returning_credit;
  }

  void Add(const AgentIdentity& from, const WorkerId& worker, std::variant<OutputPiece, OutputEnd> what)
      ABSL_LOCKS_EXCLUDED(mutex) {
    MutexLock lock(&mutex);
    const auto rank = ranks.find(worker);
    if (closed || rank == ranks.end()) return;
    items.push_back(Item{from, rank->second, std::move(what)});
    changed.NotifyAll();
  }

  void Run();
  bool Next(Item* item) ABSL_LOCKS_EXCLUDED(mutex);
  void Write(const Item& item);
  // The credit to give back now.
  int64_t Written(const Item& item) ABSL_LOCKS_EXCLUDED(mutex);
  void CreditReturned() ABSL_LOCKS_EXCLUDED(mutex);
};

void OutputWriter::Shared::Run() {
  Item item;
  while (Next(&item)) {
    Write(item);
    if (const int64_t credit = Written(item); credit > 0) return_credit(item.from, credit);
    CreditReturned();
  }
}

bool OutputWriter::Shared::Next(Item* item) {
  MutexLock lock(&mutex);
  changed.Await(&mutex, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return closed || !items.empty(); });
  if (items.empty()) return false;
  *item = std::move(items.front());
  items.pop_front();
  in_sink_since = Now();
  return true;
}

void OutputWriter::Shared::Write(const Item& item) {
  if (const auto* piece = std::get_if<OutputPiece>(&item.what)) {
    sink->Write(piece->worker, item.rank, piece->stream, piece->data);
  } else {
    sink->End(std::get<OutputEnd>(item.what).worker, item.rank);
  }
}

int64_t OutputWriter::Shared::Written(const Item& item) {
  MutexLock lock(&mutex);
  in_sink_since.reset();
  if (abandoned) return 0;
  returning_credit = true;
  int64_t& owed_to_agent = owed[item.from];
  owed_to_agent += item.bytes();
  const bool now = owed_to_agent >= credit_step || items.empty();
  return now ? std::exchange(owed_to_agent, 0) : 0;
}

void OutputWriter::Shared::CreditReturned() {
  MutexLock lock(&mutex);
  returning_credit = false;
  changed.NotifyAll();
}

OutputWriter::OutputWriter(OutputSink* sink, int64_t credit_step, ReturnCredit return_credit)
    : shared_(std::make_shared<Shared>()) {
  shared_->sink = sink;
  shared_->credit_step = credit_step;
  shared_->return_credit = std::move(return_credit);
  shared_->thread = std::thread([shared = shared_] { shared->Run(); });
}

OutputWriter::~OutputWriter() { Finish(); }

void OutputWriter::AddWorker(const WorkerId& worker, int rank) {
  MutexLock lock(&shared_->mutex);
  shared_->ranks[worker] = rank;
}

void OutputWriter::Write(const AgentIdentity& from, OutputPiece piece) {
  const WorkerId worker = piece.worker;
  shared_->Add(from, worker, std::move(piece));
}

void OutputWriter::End(OutputEnd end) {
  const WorkerId worker = end.worker;
  shared_->Add(AgentIdentity{worker.slot.host, Incarnation()}, worker, std::move(end));
}

absl::Duration OutputWriter::HeldFor(Instant now) const {
  MutexLock lock(&shared_->mutex);
  return shared_->in_sink_since ? now - *shared_->in_sink_since : absl::ZeroDuration();
}

void OutputWriter::HurryUp() {
  MutexLock lock(&shared_->mutex);
  shared_->hurry = true;
  shared_->changed.NotifyAll();
}

bool OutputWriter::Finish() {
  Shared& shared = *shared_;
  if (!shared.thread.joinable()) return finished_;
  {
    MutexLock lock(&shared.mutex);
    shared.closed = true;
    shared.changed.NotifyAll();
    const auto idle = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return shared.idle(); };
    shared.changed.Await(&shared.mutex, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return shared.idle() || shared.hurry; });
    finished_ = shared.changed.AwaitUntil(&shared.mutex, Now() + kLastPatience, idle);
    if (!finished_) {
      shared.changed.Await(&shared.mutex, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !shared.returning_credit; });
      shared.abandoned = true;
      shared.items.clear();
    }
  }
  if (finished_) {
    shared.thread.join();
  } else {
    shared.thread.detach();
  }
  return finished_;
}

}  // namespace farandole
