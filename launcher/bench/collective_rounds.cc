#include "launcher/bench/collective_rounds.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "collectives/core/communicator.h"
#include "collectives/cpu/create.h"
#include "launcher/bench/bench_tensors.h"
#include "launcher/bench/engine_rounds.h"
#include "launcher/bench/print_timing.h"
#include "launcher/bench/timed_loop.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// For what is to happen within moments.
Instant Soon() { return Now() + absl::Minutes(5); }

class Rounds {
 public:
  Rounds(const BenchRequest& request, Communicator* communicator) : request_(request), communicator_(communicator) {}

  absl::Status Measure(int64_t bytes) {
    BenchTensors tensors(request_, communicator_->size(), communicator_->rank(), bytes);
    RETURN_IF_ERROR(Once(tensors));
    RETURN_IF_ERROR(tensors.Check());
    absl::Status status;
    bench::Timing timing;
    const auto once = [&] { return (status = Once(tensors)).ok(); };
    const auto agree = [&](int64_t* rounds) {
      status = communicator_->Broadcast({reinterpret_cast<std::byte*>(rounds), sizeof *rounds}, 0, Soon());
      if (status.ok()) status = communicator_->Barrier(Soon());
      return status.ok();
    };
    if (!bench::TimeRounds(request_.seconds, once, agree, &timing)) return status;
    if (communicator_->rank() == 0) PrintTiming(request_, bytes, timing);
    return absl::OkStatus();
  }

 private:
  absl::Status Once(BenchTensors& t) {
    switch (request_.op) {
      case BenchOp::kAllReduce:
        return communicator_->AllReduce(t.input().data(), t.output().data(), t.count(), request_.dtype, ReduceOp::kSum,
                                        Soon());
      case BenchOp::kAllGather:
        return communicator_->AllGather(t.input(), t.output(), t.shares(), Soon());
      case BenchOp::kBroadcast:
        RETURN_IF_ERROR(communicator_->Broadcast(t.output(), 0, Soon()));
        return communicator_->Barrier(Soon());
      case BenchOp::kAllToAll:
        return communicator_->AllToAll(t.input(), t.shares(), t.output(), t.shares(), Soon());
      case BenchOp::kReduceScatter:
        return communicator_->ReduceScatter(t.input().data(), t.output().data(), t.shares(), request_.dtype,
                                            ReduceOp::kSum, Soon());
      case BenchOp::kBarrier:
        return communicator_->Barrier(Soon());
    }
    return absl::InternalError("an operation of no kind");
  }

  const BenchRequest& request_;
  Communicator* const communicator_;
};

}  // namespace

absl::Status RunRounds(const BenchRequest& request, const ForkedMember& member) {
  ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator,
                   CreateCommunicator(member.spec, member.transport, member.listener, member.slabs, Soon()));
  CollectiveTuning tuning;
  tuning.allreduce = tuning.allgather = request.algorithm;
  communicator->Tune(tuning);
  if (request.engine) return RunEngineRounds(request, member, std::move(communicator));
  Rounds rounds(request, communicator.get());
  for (const int64_t bytes : request.bytes) RETURN_IF_ERROR(rounds.Measure(bytes));
  return communicator->Barrier(Soon());  // nobody leaves while another one still waits for it
}

}  // namespace farandole
