#include "tests/conformance/communicator_cases.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"

namespace farandole::testing {
namespace {

using reference::Bytes;

int64_t Sum(const std::vector<int64_t>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), int64_t{0}); }

std::vector<int64_t> InBytes(std::vector<int64_t> counts, DType dtype) {
  for (int64_t& count : counts) count *= SizeOf(dtype);
  return counts;
}

// What rank `rank` gives, in elements, and gets.
struct Shape {
  int64_t input = 0;
  int64_t output = 0;
};
Shape ShapeOf(const Case& what, Rank rank, int size) {
  const std::vector<int64_t>& counts = what.counts;
  switch (what.operation) {
    case Operation::kAllReduce:
    case Operation::kAdasum:
    case Operation::kBroadcast:
      return {Sum(counts), Sum(counts)};
    case Operation::kReduceScatter:
      return {Sum(counts), counts[rank]};
    case Operation::kAllGather:
      return {counts[rank], Sum(counts)};
    case Operation::kAllToAll: {
      Shape shape;
      for (Rank other = 0; other < size; ++other) {
        shape.input += counts[rank * size + other];
        shape.output += counts[other * size + rank];
      }
      return shape;
    }
    case Operation::kBarrier:
      return {};
    case Operation::kSendReceive:
      return {rank == what.root ? counts[0] : 0, rank == what.peer ? counts[0] : 0};
  }
  return {};
}

// Integers of any size; bytes for bool of which not all are 0 or 1, but for a rank that is alone: its input is the
// result as it is. Floats whose sums and products stay in the type's range: halves, so that sums are exact, and
// others; few zeros, so that a product tells.
Bytes InputOf(const Case& what, Rank rank, int size) {
  const int64_t count = ShapeOf(what, rank, size).input;
  Prng prng(what.seed * 1000 + static_cast<uint64_t>(rank));
  Bytes bytes(static_cast<size_t>(count * SizeOf(what.dtype)));
  for (int64_t i = 0; i < count; ++i) {
    std::byte* const element = &bytes[static_cast<size_t>(i * SizeOf(what.dtype))];
    if (!IsFloat(what.dtype)) {
      const uint64_t bits = what.dtype == DType::kBool ? prng.Below(size == 1 ? 2 : 3) : prng.Next();
      std::memcpy(element, &bits, static_cast<size_t>(SizeOf(what.dtype)));
    } else {
      const long double half = (static_cast<long double>(prng.Below(7)) - 3) / 2;
      reference::Encode(what.dtype, prng.Chance(1, 3) ? half : 3 * prng.Unit() - 1.5L, element);
    }
  }
  return bytes;
}

// Memory between two guards, at some distance from any alignment.
class Guarded {
 public:
  Guarded(int64_t bytes, int64_t misalignment)
      : begin_(64 + misalignment), end_(begin_ + bytes), memory_(static_cast<size_t>(end_ + 64), kGuard) {}
  std::byte* data() { return memory_.data() + begin_; }
  absl::Span<std::byte> span() { return {data(), static_cast<size_t>(end_ - begin_)}; }
  Bytes bytes() const { return Bytes(memory_.begin() + begin_, memory_.begin() + end_); }
  void Fill(const Bytes& bytes, int64_t at = 0) {
    std::copy(bytes.begin(), bytes.end(), memory_.begin() + begin_ + at);
  }
  bool intact() const {
    auto is_guard = [](std::byte byte) { return byte == kGuard; };
    return std::all_of(memory_.begin(), memory_.begin() + begin_, is_guard) &&
           std::all_of(memory_.begin() + end_, memory_.end(), is_guard);
  }

 private:
  static constexpr std::byte kGuard{0xa5};
  int64_t begin_;
  int64_t end_;
  Bytes memory_;
};

// What a rank works on.
struct Memory {
  Guarded input;
  Guarded output;
  std::vector<int64_t> to;    // bytes, of kAllToAll
  std::vector<int64_t> from;  // likewise
};

absl::Status Call(Communicator& communicator, const Case& what, Memory& memory, Instant deadline) {
  const Rank rank = communicator.rank();
  std::byte* const output = memory.output.data();
  const std::byte* const input = what.in_place ? output : memory.input.data();
  switch (what.operation) {
    case Operation::kAllReduce:
      return communicator.AllReduce(input, output, what.counts[0], what.dtype, what.op, deadline);
    case Operation::kAdasum:
      return communicator.Adasum(output, what.counts, what.dtype, deadline);
    case Operation::kReduceScatter:
      return communicator.ReduceScatter(memory.input.data(), output, what.counts, what.dtype, what.op, deadline);
    case Operation::kAllGather: {
      const std::vector<int64_t> bytes = InBytes(what.counts, what.dtype);
      const int64_t begin = std::accumulate(bytes.begin(), bytes.begin() + rank, int64_t{0});
      const absl::Span<const std::byte> own =
          what.in_place ? absl::Span<const std::byte>(output + begin, static_cast<size_t>(bytes[rank]))
                        : memory.input.span();
      return communicator.AllGather(own, memory.output.span(), bytes, deadline);
    }
    case Operation::kAllToAll:
      return communicator.AllToAll(memory.input.span(), memory.to, memory.output.span(), memory.from, deadline);
    case Operation::kBroadcast:
      return communicator.Broadcast(memory.output.span(), what.root, deadline);
    case Operation::kBarrier:
      return communicator.Barrier(deadline);
    case Operation::kSendReceive:
      if (rank == what.root) return communicator.Send(memory.input.span(), what.peer, deadline);
      if (rank == what.peer) return communicator.Receive(memory.output.span(), what.root, deadline);
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

bool WorksInItsOutput(const Case& what) {
  return what.operation == Operation::kAdasum || what.operation == Operation::kBroadcast ||
         (what.operation == Operation::kAllReduce && what.in_place);
}

// Adasum is the only one that is not as exact as its type.
absl::optional<std::string> WrongReduction(const Case& what, const std::vector<Bytes>& inputs, const Bytes& output) {
  if (what.operation == Operation::kAdasum) {
    return reference::AdasumMismatch(inputs, what.counts, what.dtype, output);
  }
  if (what.op == ReduceOp::kAdasum) return reference::AdasumMismatch(inputs, {what.counts[0]}, what.dtype, output);
  return reference::AllReduceMismatch(inputs, what.dtype, what.op, output);
}

std::vector<Bytes> Parts(const std::vector<Bytes>& inputs, int64_t begin, int64_t bytes) {
  std::vector<Bytes> parts;
  for (const Bytes& input : inputs) parts.emplace_back(input.begin() + begin, input.begin() + begin + bytes);
  return parts;
}

// What each rank must have, of operations that only move.
std::vector<Bytes> Moved(const Case& what, const std::vector<Bytes>& inputs) {
  const size_t size = inputs.size();
  switch (what.operation) {
    case Operation::kAllGather:
      return std::vector<Bytes>(size, reference::AllGather(inputs));
    case Operation::kBroadcast:
      return std::vector<Bytes>(size, reference::Broadcast(inputs, what.root));
    case Operation::kAllToAll: {
      const std::vector<int64_t> bytes = InBytes(what.counts, what.dtype);
      std::vector<std::vector<int64_t>> matrix;
      for (size_t i = 0; i < size; ++i) matrix.emplace_back(bytes.begin() + i * size, bytes.begin() + (i + 1) * size);
      return reference::AllToAll(inputs, matrix);
    }
    default: {
      std::vector<Bytes> outputs(size);
      if (what.operation == Operation::kSendReceive) outputs[what.peer] = inputs[what.root];
      return outputs;
    }
  }
}

}  // namespace

std::string Name(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "allreduce";
    case Operation::kAdasum:
      return "adasum";
    case Operation::kReduceScatter:
      return "reducescatter";
    case Operation::kAllGather:
      return "allgather";
    case Operation::kAllToAll:
      return "alltoall";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kSendReceive:
      return "send_receive";
  }
  return "";
}

std::string Describe(const Case& what) {
  return absl::StrCat(Name(what.operation), " of ", Name(what.dtype), ", op ", Name(what.op), ", counts ",
                      absl::StrJoin(what.counts, " "), ", root ", what.root, ", peer ", what.peer,
                      what.in_place ? ", in place" : "", ", misaligned by ", what.misalignment, ", seed ", what.seed);
}

absl::StatusOr<Bytes> RunCase(Communicator& communicator, const Case& what, Instant deadline) {
  const Rank rank = communicator.rank();
  const int size = communicator.size();
  const Bytes input = InputOf(what, rank, size);
  const Shape shape = ShapeOf(what, rank, size);
  const int64_t element = SizeOf(what.dtype);
  Memory memory{
      Guarded(shape.input * element, what.misalignment), Guarded(shape.output * element, what.misalignment), {}, {}};
  memory.input.Fill(input);
  if (WorksInItsOutput(what)) memory.output.Fill(input);
  if (what.operation == Operation::kAllGather && what.in_place) {
    memory.output.Fill(input, element * std::accumulate(what.counts.begin(), what.counts.begin() + rank, int64_t{0}));
  }
  if (what.operation == Operation::kAllToAll) {
    for (Rank other = 0; other < size; ++other) {
      memory.to.push_back(what.counts[rank * size + other] * element);
      memory.from.push_back(what.counts[other * size + rank] * element);
    }
  }
  RETURN_IF_ERROR(Call(communicator, what, memory, deadline));
  RETURN_IF_ERROR(communicator.Await(deadline));
  if (memory.input.bytes() != input) return absl::DataLossError("the input was written to");
  if (!memory.input.intact() || !memory.output.intact()) {
    return absl::DataLossError("memory around the buffers was written to");
  }
  return memory.output.bytes();
}

absl::optional<std::string> Mismatch(const Case& what, const std::vector<Bytes>& outputs) {
  const int size = static_cast<int>(outputs.size());
  std::vector<Bytes> inputs;
  for (Rank rank = 0; rank < size; ++rank) inputs.push_back(InputOf(what, rank, size));
  const bool reduces = what.operation == Operation::kAllReduce || what.operation == Operation::kAdasum;
  if (reduces) {
    for (Rank rank = 1; rank < size; ++rank) {
      if (outputs[rank] != outputs[0]) return absl::StrCat("rank ", rank, " has other bytes than rank 0");
    }
    return WrongReduction(what, inputs, outputs[0]);
  }
  if (what.operation == Operation::kReduceScatter) {
    int64_t begin = 0;
    for (Rank rank = 0; rank < size; ++rank) {
      const int64_t bytes = what.counts[rank] * SizeOf(what.dtype);
      const auto wrong = WrongReduction(what, Parts(inputs, begin, bytes), outputs[rank]);
      if (wrong.has_value()) return absl::StrCat("rank ", rank, ": ", *wrong);
      begin += bytes;
    }
    return absl::nullopt;
  }
  const std::vector<Bytes> want = Moved(what, inputs);
  for (Rank rank = 0; rank < size; ++rank) {
    if (outputs[rank] != want[rank]) return absl::StrCat("rank ", rank, " has not what it was sent");
  }
  return absl::nullopt;
}

}  // namespace farandole::testing
