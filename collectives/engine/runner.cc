#include "collectives/engine/runner.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "collectives/cpu/neutral.h"
#include "collectives/cpu/reduce.h"
#include "collectives/schedule/segment.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

int64_t Count(const Request& request) { return ElementCount(request.shape, request.dtype).value_or(0); }
int64_t Bytes(const Request& request) { return Count(request) * SizeOf(request.dtype); }

// Elements of one row.
int64_t RowCount(const Request& request) {
  int64_t count = 1;
  for (size_t i = 1; i < request.shape.size(); ++i) count *= request.shape[i];
  return count;
}

void Copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
}

absl::Span<const std::byte> InputOf(const Request& request, int64_t bytes) {
  return {static_cast<const std::byte*>(request.input), static_cast<size_t>(bytes)};
}

absl::Status NoMemory(int64_t bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("there is no memory for the ", bytes, " bytes of an operation"));
}

absl::Status MakeOutput(int64_t bytes, Result& result) {
  absl::optional<ByteBuffer> output = ByteBuffer::Make(bytes);
  if (!output.has_value()) return NoMemory(bytes);
  result.output = *std::move(output);
  return absl::OkStatus();
}

}  // namespace

absl::Status Runner::Run(Operation& operation, std::vector<Result>& results) {
  present_ = 1 - present_;
  if (operation.response.kind == OperationKind::kAllReduce) {
    RETURN_IF_ERROR(AllReduce(operation));
  } else {
    for (size_t i = 0; i < operation.requests.size(); ++i) {
      RETURN_IF_ERROR(RunOne(operation, operation.requests[i], results[i]));
    }
  }
  return communicator_->Await(Deadline());
}

absl::Status Runner::RunOne(Operation& operation, const Pending& pending, Result& result) {
  const Request& request = pending.request;
  switch (request.kind) {
    case OperationKind::kAllReduce:
      break;  // in Run, all at once
    case OperationKind::kAllGather:
      return AllGather(operation, request, result);
    case OperationKind::kBroadcast:
      return Broadcast(operation, request);
    case OperationKind::kJoin:
      result.last_joined = operation.response.root;
      return absl::OkStatus();
    case OperationKind::kAllToAll:
      return AllToAll(operation, request, result);
    case OperationKind::kBarrier:
      return communicator_->Barrier(Deadline());
    case OperationKind::kReduceScatter:
      return ReduceScatter(operation, request, result);
    case OperationKind::kSend:
      return communicator_->Send(InputOf(request, Bytes(request)), request.root, Deadline());
    case OperationKind::kReceive:
      return communicator_->Receive({static_cast<std::byte*>(request.output), static_cast<size_t>(Bytes(request))},
                                    request.root, Deadline());
  }
  return absl::InternalError("an operation of no kind");
}

Instant Runner::Deadline() const { return Now() + data_timeout_; }

absl::StatusOr<std::byte*> Runner::Buffer(int64_t bytes) {
  Memory& memory = buffers_[present_];
  if (bytes > memory.bytes) {
    memory = Memory();
    memory.data.reset(new (std::nothrow) std::byte[bytes]);
    if (memory.data == nullptr) return NoMemory(bytes);
    memory.bytes = bytes;
  }
  return memory.data.get();
}

// The factor that is left to do after the reduction: a joined rank is in the divisor of an average, unless it is not to
// be.
double Runner::PostscaleOf(const Response& response) const {
  const int active = communicator_->size() - static_cast<int>(response.joined.size());
  const bool corrects = response.op == ReduceOp::kAverage && join_divisor_ == JoinDivisor::kActive && active > 0;
  return corrects ? response.postscale * communicator_->size() / active : response.postscale;
}

bool Runner::RunsInPlace(const Operation& operation) const {
  return operation.requests.size() == 1 && !operation.joined && operation.response.prescale == 1.0 &&
         operation.response.op != ReduceOp::kAdasum;
}

absl::StatusOr<Runner::Packed> Runner::Pack(const Operation& operation) {
  const Response& how = operation.response;
  int64_t count = 0;
  for (const Pending& pending : operation.requests) count += Count(pending.request);
  ASSIGN_OR_RETURN(std::byte* const buffer, Buffer(count * SizeOf(how.dtype)));
  if (operation.joined) {
    FillNeutral(how.dtype, how.op, buffer, count);
    return Packed{buffer, count};
  }
  std::byte* at = buffer;
  for (const Pending& pending : operation.requests) {
    const int64_t bytes = Bytes(pending.request);
    if (how.prescale == 1.0) {
      Copy(at, pending.request.input, bytes);
    } else {
      Scale(how.dtype, pending.request.input, at, Count(pending.request), how.prescale);
    }
    at += bytes;
  }
  return Packed{buffer, count};
}

void Runner::Deliver(const Operation& operation, const std::byte* data) const {
  if (operation.joined) return;
  const double postscale = PostscaleOf(operation.response);
  for (const Pending& pending : operation.requests) {
    const int64_t bytes = Bytes(pending.request);
    if (postscale == 1.0) {
      Copy(pending.request.output, data, bytes);
    } else {
      Scale(operation.response.dtype, data, pending.request.output, Count(pending.request), postscale);
    }
    data += bytes;
  }
}

absl::Status Runner::AllReduce(Operation& operation) {
  const Response& how = operation.response;
  if (RunsInPlace(operation)) {
    const Request& request = operation.requests[0].request;
    std::byte* to = static_cast<std::byte*>(request.output);
    if (!communicator_->retains_results() || PostscaleOf(how) != 1.0) {
      ASSIGN_OR_RETURN(to, Buffer(Bytes(request)));
    }
    RETURN_IF_ERROR(communicator_->AllReduce(request.input, to, Count(request), how.dtype, how.op, Deadline()));
    RETURN_IF_ERROR(communicator_->Await(Deadline()));
    Deliver(operation, to);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Packed packed, Pack(operation));
  if (how.op == ReduceOp::kAdasum) {
    std::vector<int64_t> pieces;
    for (const Pending& pending : operation.requests) pieces.push_back(Count(pending.request));
    RETURN_IF_ERROR(communicator_->Adasum(packed.data, pieces, how.dtype, Deadline()));
  } else {
    RETURN_IF_ERROR(communicator_->AllReduce(packed.data, packed.data, packed.count, how.dtype, how.op, Deadline()));
  }
  RETURN_IF_ERROR(communicator_->Await(Deadline()));
  Deliver(operation, packed.data);
  return absl::OkStatus();
}

bool Runner::IsShort(const Operation& operation) const {
  const ShortAllReduce* const can = communicator_->short_allreduce();
  const Response& how = operation.response;
  if (can == nullptr || how.kind != OperationKind::kAllReduce || how.op == ReduceOp::kAdasum) return false;
  int64_t bytes = 0;
  for (const Pending& pending : operation.requests) {
    bytes += Bytes(pending.request);
    if (bytes > can->max_bytes()) return false;
  }
  return operation.error.ok();
}

absl::StatusOr<bool> Runner::BeginShort(Operation& operation, Instant patience) {
  present_ = 1 - present_;
  ASSIGN_OR_RETURN(const Packed packed, Pack(operation));
  short_data_ = packed.data;
  ASSIGN_OR_RETURN(const bool done,
                   communicator_->short_allreduce()->Begin(packed.data, packed.count, operation.response.dtype,
                                                           operation.response.op, patience));
  if (done) Deliver(operation, short_data_);
  return done;
}

absl::Status Runner::FinishShort(Operation& operation) {
  RETURN_IF_ERROR(communicator_->short_allreduce()->Finish(Deadline()));
  Deliver(operation, short_data_);
  return absl::OkStatus();
}

absl::Status Runner::AllGather(const Operation& operation, const Request& request, Result& result) {
  const std::vector<int64_t>& dims = operation.response.first_dims;
  const int64_t row_bytes = RowCount(request) * SizeOf(request.dtype);
  std::vector<int64_t> bytes;
  for (const int64_t dim : dims) bytes.push_back(dim * row_bytes);
  result.rows = dims;
  RETURN_IF_ERROR(MakeOutput(GatheredBytes(request.shape, request.dtype, dims).value_or(0), result));
  return communicator_->AllGather(InputOf(request, Bytes(request)), result.output.span(), bytes, Deadline());
}

absl::Status Runner::ReduceScatter(const Operation& operation, const Request& request, Result& result) {
  const Response& how = operation.response;
  const int size = communicator_->size();
  std::vector<int64_t> counts;
  for (Rank rank = 0; rank < size; ++rank) {
    result.rows.push_back(SegmentOf(request.shape[0], size, rank).size());
    counts.push_back(result.rows.back() * RowCount(request));
  }
  const void* input = request.input;
  if (operation.joined || how.prescale != 1.0) {
    ASSIGN_OR_RETURN(std::byte* const buffer, Buffer(Bytes(request)));
    if (operation.joined) {
      FillNeutral(how.dtype, how.op, buffer, Count(request));
    } else {
      Scale(how.dtype, request.input, buffer, Count(request), how.prescale);
    }
    input = buffer;
  }
  const int64_t own = counts[communicator_->rank()];
  RETURN_IF_ERROR(MakeOutput(own * SizeOf(how.dtype), result));
  std::byte* const output = result.output.data();
  RETURN_IF_ERROR(communicator_->ReduceScatter(input, output, counts, how.dtype, how.op, Deadline()));
  RETURN_IF_ERROR(communicator_->Await(Deadline()));
  if (PostscaleOf(how) != 1.0) Scale(how.dtype, output, output, own, PostscaleOf(how));
  return absl::OkStatus();
}

// First how many rows everybody gets from whom, then the rows.
absl::Status Runner::AllToAll(const Operation& operation, const Request& request, Result& result) {
  const int size = communicator_->size();
  const int64_t row_bytes = RowCount(request) * SizeOf(request.dtype);
  std::vector<int64_t> rows = request.splits;
  if (rows.empty()) rows.assign(size, request.shape[0] / size);
  result.rows.resize(size);
  const std::vector<int64_t> one(size, sizeof(int64_t));
  const auto bytes_of = [](std::vector<int64_t>& numbers) {
    return absl::MakeSpan(reinterpret_cast<std::byte*>(numbers.data()), numbers.size() * sizeof(int64_t));
  };
  RETURN_IF_ERROR(communicator_->AllToAll(bytes_of(rows), one, bytes_of(result.rows), one, Deadline()));
  int64_t given = 0, got = 0;
  std::vector<int64_t> to, from;
  for (Rank rank = 0; rank < size; ++rank) {
    to.push_back(rows[rank] * row_bytes);
    from.push_back(result.rows[rank] * row_bytes);
    given += to.back(), got += from.back();
  }
  RETURN_IF_ERROR(MakeOutput(got, result));
  return communicator_->AllToAll(InputOf(request, given), to, result.output.span(), from, Deadline());
}

absl::Status Runner::Broadcast(const Operation& operation, const Request& request) {
  const int64_t bytes = Bytes(request);
  ASSIGN_OR_RETURN(std::byte* const buffer, Buffer(bytes));
  if (communicator_->rank() == request.root) Copy(buffer, request.input, bytes);
  RETURN_IF_ERROR(communicator_->Broadcast(absl::MakeSpan(buffer, bytes), request.root, Deadline()));
  RETURN_IF_ERROR(communicator_->Await(Deadline()));
  if (!operation.joined) Copy(request.output, buffer, bytes);
  return absl::OkStatus();
}

}  // namespace farandole
