#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collectives/core/group.h"
#include "launcher/bench/bench_request.h"

namespace farandole {

// The memory of one operation at one rank, filled so that its result is known: each element that rank r gives is 1 if r
// is even and 2 if it is odd.
class BenchTensors {
 public:
  BenchTensors(const BenchRequest& request, int size, Rank rank, int64_t bytes);

  absl::Span<const std::byte> input() const { return input_; }
  absl::Span<std::byte> output() { return absl::MakeSpan(output_); }
  int64_t count() const { return count_; }  // elements of the whole tensor
  // Of every rank: bytes; for reducescatter elements.
  absl::Span<const int64_t> shares() const { return shares_; }

  // Internal if the output is not what the operation gives.
  absl::Status Check() const;

 private:
  int64_t Given(Rank rank) const { return 1 + rank % 2; }
  // What element `index` of the output must be.
  int64_t Expected(int64_t index) const;

  const BenchOp op_;
  const DType dtype_;
  const int size_;
  const Rank rank_;
  int64_t count_ = 0;
  std::vector<int64_t> shares_;
  std::vector<std::byte> input_, output_;
};

}  // namespace farandole
