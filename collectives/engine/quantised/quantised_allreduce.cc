#include "collectives/engine/quantised/quantised_allreduce.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "collectives/engine/quantised/block_code.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// Whole blocks, dealt so that shares differ by one block at most; the last one that is not empty may be short.
std::vector<int64_t> SharesOf(int64_t count, int size) {
  const int64_t blocks = (count + kBlockValues - 1) / kBlockValues;
  std::vector<int64_t> shares(size);
  int64_t left = count;
  for (int rank = 0; rank < size; ++rank) {
    const int64_t values = (blocks / size + (rank < blocks % size ? 1 : 0)) * kBlockValues;
    shares[rank] = std::min(values, left);
    left -= shares[rank];
  }
  return shares;
}

// What is owed after `sent` was sent for `wanted`, times `weight`. NaN is no debt.
float Owed(float wanted, float sent, float weight) {
  const float owed = (wanted - sent) * weight;
  return std::isfinite(owed) ? owed : 0;
}

absl::Status CheckArguments(const Communicator& communicator, int64_t count, ReduceOp op) {
  if (op != ReduceOp::kSum && op != ReduceOp::kAverage) {
    return absl::InvalidArgumentError(
        absl::StrCat("int8 compression reduces by sum or average, not by ", Name(op), "; use no compression for it"));
  }
  if (communicator.memory() != MemoryKind::kHost) {
    return absl::InvalidArgumentError("int8 compression works on host memory only; copy the tensor to the host first");
  }
  if (count < 0) return absl::InvalidArgumentError(absl::StrCat("a tensor of ", count, " elements"));
  return absl::OkStatus();
}

// The sum of all ranks' `share` elements, which stand in `received` one after the other, in rank order.
std::vector<float> SumOf(const std::vector<std::byte>& received, int64_t share, int size) {
  std::vector<float> sum(share, 0.0f);
  std::vector<float> term(share);
  const int64_t bytes = EncodedBytes(share);
  for (int rank = 0; rank < size; ++rank) {
    DecodeBlocks(received.data() + rank * bytes, absl::MakeSpan(term));
    for (int64_t i = 0; i < share; ++i) sum[i] += term[i];
  }
  return sum;
}

}  // namespace

absl::Status QuantisedAllReduce(Communicator& communicator, const float* input, float* output, int64_t count,
                                ReduceOp op, ErrorFeedback* feedback, Instant deadline) {
  RETURN_IF_ERROR(CheckArguments(communicator, count, op));
  if (count == 0) return absl::OkStatus();
  const int size = communicator.size();
  const int me = communicator.rank();

  std::vector<float> wanted(input, input + count);
  if (feedback != nullptr && feedback->residual.size() == wanted.size()) {
    for (int64_t i = 0; i < count; ++i) wanted[i] += feedback->residual[i];
  }
  if (size == 1) {
    std::copy(wanted.begin(), wanted.end(), output);
    if (feedback != nullptr) feedback->residual.clear();
    return absl::OkStatus();
  }

  const std::vector<int64_t> shares = SharesOf(count, size);
  std::vector<int64_t> share_bytes(size);
  std::transform(shares.begin(), shares.end(), share_bytes.begin(), EncodedBytes);
  std::vector<std::byte> sent(std::accumulate(share_bytes.begin(), share_bytes.end(), int64_t{0}));
  std::vector<float> owed(count);
  int64_t my_start = 0;
  int64_t start = 0;
  std::byte* to = sent.data();
  for (int rank = 0; rank < size; ++rank) {
    if (rank == me) my_start = start;
    EncodeBlocks(absl::MakeConstSpan(wanted).subspan(start, shares[rank]), to);
    DecodeBlocks(to, absl::MakeSpan(owed).subspan(start, shares[rank]));
    start += shares[rank];
    to += share_bytes[rank];
  }
  for (int64_t i = 0; i < count; ++i) owed[i] = Owed(wanted[i], owed[i], 1);

  const std::vector<int64_t> from(size, share_bytes[me]);
  std::vector<std::byte> received(share_bytes[me] * size);
  RETURN_IF_ERROR(communicator.AllToAll(sent, share_bytes, absl::MakeSpan(received), from, deadline));

  std::vector<float> sum = SumOf(received, shares[me], size);
  if (op == ReduceOp::kAverage) {
    for (float& value : sum) value /= static_cast<float>(size);
  }
  std::vector<std::byte> mine(share_bytes[me]);
  EncodeBlocks(sum, mine.data());
  RETURN_IF_ERROR(communicator.AllGather(mine, absl::MakeSpan(sent), share_bytes, deadline));

  // One rank repays what the sum lost; in an average its word counts 1 / size.
  std::vector<float> rounded(shares[me]);
  DecodeBlocks(mine.data(), absl::MakeSpan(rounded));
  const float weight = op == ReduceOp::kAverage ? static_cast<float>(size) : 1.0f;
  for (int64_t i = 0; i < shares[me]; ++i) owed[my_start + i] += Owed(sum[i], rounded[i], weight);

  const std::byte* share = sent.data();
  for (int rank = 0; rank < size; ++rank) {
    DecodeBlocks(share, absl::MakeSpan(output, shares[rank]));
    output += shares[rank];
    share += share_bytes[rank];
  }
  if (feedback != nullptr) feedback->residual = std::move(owed);
  return absl::OkStatus();
}

}  // namespace farandole
