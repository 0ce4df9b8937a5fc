#include "collectives/cpu/flat/flat_short.h"

#include <cstring>

#include "collectives/cpu/reduce.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {

void FlatShort::Post(const Reduction& reduction, uint64_t what) {
  reduction_ = reduction;
  what_ = what;
  here_ = 0;
  FlatSlab::Short& message = slab_.short_message(spec_.rank, ++number_);
  if (reduction.count > 0) std::memcpy(message.data, reduction.input, reduction.count * reduction.width());
  message.what.store(what, std::memory_order_relaxed);
  message.number.store(number_);
  wait_.Notify();
}

bool FlatShort::AllHere() {
  while (here_ < spec_.size() &&
         slab_.short_message(here_, number_).number.load(std::memory_order_acquire) >= number_) {
    ++here_;
  }
  return here_ == spec_.size();
}

absl::Status FlatShort::Finish(Instant deadline) {
  RETURN_IF_ERROR(wait_.Until([this] { return AllHere(); }, deadline));
  return Combine();
}

absl::StatusOr<bool> FlatShort::TryFinish(Instant patience) {
  if (!AllHere() && !wait_.Within([this] { return AllHere(); }, patience - Now())) return false;
  RETURN_IF_ERROR(Combine());
  return true;
}

absl::Status FlatShort::Combine() {
  sources_.clear();
  for (Rank rank = 0; rank < spec_.size(); ++rank) {
    const FlatSlab::Short& message = slab_.short_message(rank, number_);
    if (message.what.load(std::memory_order_relaxed) != what_) return wait_.DifferentCollectives(rank);
    sources_.push_back(message.data);
  }
  if (reduction_.count == 0) return absl::OkStatus();
  const int divisor = reduction_.op == ReduceOp::kAverage ? spec_.size() : 1;
  ReduceMany(reduction_.dtype, reduction_.op, sources_, reduction_.output, nullptr, reduction_.count, divisor);
  return absl::OkStatus();
}

}  // namespace farandole
