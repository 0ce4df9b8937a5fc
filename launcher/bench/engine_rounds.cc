#include "launcher/bench/engine_rounds.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/cpu/create.h"
#include "collectives/engine/engine.h"
#include "collectives/engine/request.h"
#include "collectives/transport/control_channel.h"
#include "launcher/bench/bench_tensors.h"
#include "launcher/bench/print_timing.h"
#include "launcher/bench/timed_loop.h"
#include "tools/base/clock.h"
#include "tools/base/mutex.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(5);

// Requests that were made together, until the last has ended.
class Batch {
 public:
  explicit Batch(int64_t count) : left_(count) {}

  void Ended(const absl::Status& status) {
    if (!status.ok()) {
      MutexLock lock(&mutex_);
      status_.Update(status);
    }
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    MutexLock lock(&mutex_);
    changed_.NotifyAll();
  }
  bool ended() const { return left_.load(std::memory_order_acquire) <= 0; }

  absl::Status Wait() {
    MutexLock lock(&mutex_);
    if (!changed_.AwaitUntil(&mutex_, Now() + kPatience, [this] { return ended(); })) {
      return absl::DeadlineExceededError("an operation does not end");
    }
    return status_;
  }

 private:
  std::atomic<int64_t> left_;
  Mutex mutex_;
  CondVar changed_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

class EngineRounds {
 public:
  EngineRounds(const BenchRequest& request, const GroupSpec& spec, Engine* engine)
      : request_(request), size_(spec.size()), rank_(spec.rank), engine_(engine) {}

  absl::Status Measure(int64_t bytes) {
    std::vector<BenchTensors> tensors;
    for (int64_t i = 0; i < request_.tensors; ++i) tensors.emplace_back(request_, size_, rank_, bytes);
    RETURN_IF_ERROR(Once(tensors));
    for (const BenchTensors& one : tensors) RETURN_IF_ERROR(one.Check());
    absl::Status status;
    bench::Timing timing;
    const auto once = [&] { return (status = Once(tensors)).ok(); };
    const auto agree = [&](int64_t* rounds) { return (status = Share(rounds)).ok(); };
    if (!bench::TimeRounds(request_.seconds, once, agree, &timing)) return status;
    if (rank_ == 0) PrintTiming(request_, bytes, timing);
    return absl::OkStatus();
  }

 private:
  absl::Status Run(std::vector<Request> requests) {
    Batch batch(static_cast<int64_t>(requests.size()));
    for (Request& request : requests) {
      std::vector<Request> one;
      one.push_back(std::move(request));
      const absl::Status asked =
          engine_->Enqueue(std::move(one), {[&batch](absl::Status status, Result) { batch.Ended(status); }});
      if (!asked.ok()) batch.Ended(asked);
    }
    engine_->Assist([&batch] { return batch.ended(); }, Now() + kPatience);
    return batch.Wait();
  }

  absl::Status Once(std::vector<BenchTensors>& tensors) {
    std::vector<Request> requests;
    requests.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      Request request;
      request.name = absl::StrCat("bench.", i);
      request.dtype = request_.dtype;
      request.shape = {tensors[i].count()};
      request.input = tensors[i].input().data();
      request.output = tensors[i].output().data();
      requests.push_back(std::move(request));
    }
    return Run(std::move(requests));
  }

  absl::Status Share(int64_t* rounds) {
    Request request;
    request.kind = OperationKind::kBroadcast;
    request.name = "bench.rounds";
    request.dtype = DType::kInt64;
    request.shape = {1};
    request.input = request.output = rounds;
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    return Run(std::move(requests));
  }

  const BenchRequest& request_;
  const int size_;
  const Rank rank_;
  Engine* const engine_;
};

}  // namespace

absl::Status RunEngineRounds(const BenchRequest& request, const ForkedMember& member,
                             std::unique_ptr<Communicator> communicator) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<ControlChannel> channel,
      CreateControlChannel(member.spec, member.transport, member.listener, member.slabs, Now() + kPatience));
  const std::unique_ptr<Engine> engine =
      Engine::Create(EngineConfig(), member.spec, std::move(communicator), std::move(channel));
  EngineRounds rounds(request, member.spec, engine.get());
  for (const int64_t bytes : request.bytes) RETURN_IF_ERROR(rounds.Measure(bytes));
  engine->Shutdown(Now() + kPatience);
  return absl::OkStatus();
}

}  // namespace farandole
