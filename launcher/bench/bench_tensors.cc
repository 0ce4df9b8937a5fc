#include "launcher/bench/bench_tensors.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "collectives/core/types.h"
#include "collectives/cpu/reduce.h"
#include "collectives/schedule/segment.h"

namespace farandole {
namespace {

// The bytes of `count` elements of value `value`: those of 1 are got by scaling nothing, so each type's one is written
// down once, and sums make the rest.
std::vector<std::byte> Elements(DType dtype, int64_t count, int64_t value) {
  const auto one = [dtype]() -> std::vector<std::byte> {
    const auto bytes = [](auto number) {
      std::vector<std::byte> result(sizeof number);
      std::memcpy(result.data(), &number, sizeof number);
      return result;
    };
    switch (dtype) {
      case DType::kUint8:
      case DType::kInt8:
      case DType::kBool:
        return bytes(uint8_t{1});
      case DType::kUint16:
      case DType::kInt16:
        return bytes(uint16_t{1});
      case DType::kInt32:
        return bytes(int32_t{1});
      case DType::kInt64:
        return bytes(int64_t{1});
      case DType::kFloat16:
        return bytes(uint16_t{0x3c00});
      case DType::kBfloat16:
        return bytes(uint16_t{0x3f80});
      case DType::kFloat32:
        return bytes(1.0f);
      case DType::kFloat64:
        return bytes(1.0);
    }
    return {};
  }();
  std::vector<std::byte> element = one;
  for (int64_t i = 1; i < value; ++i) Reduce(dtype, ReduceOp::kSum, element.data(), one.data(), element.data(), 1);
  std::vector<std::byte> all(static_cast<size_t>(count) * element.size());
  for (size_t at = 0; at < all.size(); at += element.size()) std::memcpy(&all[at], element.data(), element.size());
  return all;
}

}  // namespace

BenchTensors::BenchTensors(const BenchRequest& request, int size, Rank rank, int64_t bytes)
    : op_(request.op), dtype_(request.dtype), size_(size), rank_(rank), count_(bytes / SizeOf(request.dtype)) {
  const int64_t unit = op_ == BenchOp::kReduceScatter ? 1 : SizeOf(dtype_);
  for (Rank r = 0; r < size; ++r) {
    // In an alltoall all blocks are alike.
    const int64_t share = op_ == BenchOp::kAllToAll ? count_ / size : SegmentOf(count_, size, r).size();
    shares_.push_back(share * unit);
  }
  if (op_ == BenchOp::kAllToAll) count_ = count_ / size * size;
  const int64_t own = SegmentOf(count_, size, rank).size();
  const bool gives_own = op_ == BenchOp::kAllGather;
  const bool gets_own = op_ == BenchOp::kReduceScatter;
  input_ = Elements(dtype_, gives_own ? own : count_, Given(rank));
  output_ = Elements(dtype_, gets_own ? own : count_, op_ == BenchOp::kBroadcast ? Given(rank) : 1);
}

int64_t BenchTensors::Expected(int64_t index) const {
  switch (op_) {
    case BenchOp::kAllReduce:
    case BenchOp::kReduceScatter: {
      int64_t sum = 0;
      for (Rank rank = 0; rank < size_; ++rank) sum += Given(rank);
      return sum;
    }
    case BenchOp::kAllGather:
      for (Rank rank = 0; rank < size_; ++rank) {
        if (index < SegmentOf(count_, size_, rank).end) return Given(rank);
      }
      return 0;
    case BenchOp::kAllToAll:
      return Given(static_cast<Rank>(index / (count_ / size_)));
    case BenchOp::kBroadcast:
    case BenchOp::kBarrier:
      return Given(0);
  }
  return 0;
}

absl::Status BenchTensors::Check() const {
  if (op_ == BenchOp::kBarrier || dtype_ == DType::kBool) return absl::OkStatus();
  const int64_t width = SizeOf(dtype_);
  int64_t known = -1;
  std::vector<std::byte> want;
  for (int64_t i = 0; i < static_cast<int64_t>(output_.size()) / width; ++i) {
    const int64_t expected = Expected(i);
    if (expected != known) want = Elements(dtype_, 1, known = expected);
    if (std::memcmp(&output_[static_cast<size_t>(i * width)], want.data(), want.size()) != 0) {
      return absl::InternalError(absl::StrCat("element ", i, " of the result of ", Name(op_), " is wrong"));
    }
  }
  return absl::OkStatus();
}

}  // namespace farandole
