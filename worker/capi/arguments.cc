#include "worker/capi/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "collectives/core/types.h"
#include "tools/base/clock.h"
#include "tools/base/status_macros.h"

namespace farandole {
namespace {

// The size of `Struct` up to and with `field`.
#define SIZE_WITH(Struct, field) (offsetof(Struct, field) + sizeof(Struct::field))

// `given` over `defaults`, as far as both sides know the struct; `required`: what every version has had.
template <typename Struct>
absl::StatusOr<Struct> ReadStruct(const Struct* given, size_t required, Struct defaults, absl::string_view what) {
  if (given == nullptr) return absl::InvalidArgumentError(absl::StrCat(what, " is NULL"));
  if (given->struct_size < required) {
    return absl::InvalidArgumentError(absl::StrCat(what, ".struct_size is ", given->struct_size,
                                                   ", but it has at least ", required,
                                                   " bytes: set it to the size of the struct"));
  }
  std::memcpy(&defaults, given, std::min(given->struct_size, sizeof(Struct)));
  return defaults;
}

absl::StatusOr<fdl_tensor> ReadTensor(const fdl_tensor* tensor) {
  return ReadStruct(tensor, SIZE_WITH(fdl_tensor, dtype), fdl_tensor{}, "fdl_tensor");
}

absl::Status NameRequest(const char* name, Request* request) {
  if (name == nullptr || *name == '\0') return absl::InvalidArgumentError("the operation's name is NULL or empty");
  request->name = name;
  return absl::OkStatus();
}

absl::Status DescribeTensor(const fdl_tensor& tensor, Request* request) {
  const auto dtype = DTypeFromNumber(tensor.dtype);
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(request->name, ": dtype ", tensor.dtype, " is not one of fdl_dtype"));
  }
  if (tensor.dims < 0 || (tensor.dims > 0 && tensor.shape == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat(request->name, ": a shape of ", tensor.dims, " dimensions",
                                                   tensor.dims > 0 ? " is NULL" : " makes no sense"));
  }
  int64_t bytes = SizeOf(*dtype);
  for (int32_t i = 0; i < tensor.dims; ++i) {
    if (tensor.shape[i] < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(tensor.shape[i], 1), &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(request->name, ": dimension ", i, " is ", tensor.shape[i], ", which makes no sense"));
    }
  }
  request->dtype = *dtype;
  request->shape.assign(tensor.shape, tensor.shape + tensor.dims);
  request->input = tensor.input;
  request->output = tensor.output;
  return absl::OkStatus();
}

absl::Status DescribeReduction(const fdl_reduce_args& args, Request* request) {
  const auto op = ReduceOpFromNumber(args.op);
  if (!op.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(request->name, ": op ", args.op, " is not one of fdl_reduce_op"));
  }
  request->op = *op;
  request->prescale = args.prescale;
  request->postscale = args.postscale;
  return absl::OkStatus();
}

absl::StatusOr<Request> ToRequest(OperationKind kind, const char* name, const fdl_tensor* tensor) {
  Request request;
  request.kind = kind;
  RETURN_IF_ERROR(NameRequest(name, &request));
  ASSIGN_OR_RETURN(const fdl_tensor known, ReadTensor(tensor), std::move(_) << name);
  RETURN_IF_ERROR(DescribeTensor(known, &request));
  return request;
}

}  // namespace

absl::StatusOr<Instant> ToDeadline(double timeout_seconds) {
  if (std::isnan(timeout_seconds)) return absl::InvalidArgumentError("the time-out is not a number");
  if (timeout_seconds < 0) return Instant::Infinite();
  constexpr double kYear = 365.0 * 24 * 3600;
  if (timeout_seconds > kYear) return Instant::Infinite();
  return Now() + absl::Seconds(timeout_seconds);
}

absl::StatusOr<Instant> ToDeadline(const fdl_init_args* args) {
  const fdl_init_args defaults{sizeof(fdl_init_args), -1.0};
  if (args == nullptr) return ToDeadline(defaults.timeout_seconds);
  ASSIGN_OR_RETURN(const fdl_init_args known,
                   ReadStruct(args, SIZE_WITH(fdl_init_args, struct_size), defaults, "fdl_init_args"));
  return ToDeadline(known.timeout_seconds);
}

absl::StatusOr<std::vector<Request>> ToAllReduces(const char* const* names, const fdl_tensor* tensors, int32_t count,
                                                  const fdl_reduce_args* args) {
  if (names == nullptr || tensors == nullptr || count <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("an allreduce of ", count,
                                                   " tensors: there must be one or more, with "
                                                   "names"));
  }
  const fdl_reduce_args defaults{sizeof(fdl_reduce_args), FDL_SUM, 1.0, 1.0};
  ASSIGN_OR_RETURN(const fdl_reduce_args reduction,
                   ReadStruct(args, SIZE_WITH(fdl_reduce_args, op), defaults, "fdl_reduce_args"));
  // The caller's array has the caller's stride.
  const auto* next = reinterpret_cast<const char*>(tensors);
  const size_t stride = tensors->struct_size;
  std::vector<Request> requests;
  for (int32_t i = 0; i < count; ++i, next += stride) {
    const auto* tensor = reinterpret_cast<const fdl_tensor*>(next);
    if (tensor->struct_size != stride) {
      return absl::InvalidArgumentError(absl::StrCat("fdl_tensor number ", i, " has struct_size ", tensor->struct_size,
                                                     ", the first one has ", stride));
    }
    ASSIGN_OR_RETURN(Request request, ToRequest(OperationKind::kAllReduce, names[i], tensor));
    RETURN_IF_ERROR(DescribeReduction(reduction, &request));
    requests.push_back(std::move(request));
  }
  return requests;
}

namespace {

// The name that joins have, whatever the caller calls it: it is the same on all ranks.
constexpr char kJoinName[] = "join.noname";

absl::StatusOr<Request> ToRequest(const fdl_request& known) {
  const absl::optional<OperationKind> kind = OperationKindFromNumber(known.kind);
  if (!kind.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("kind ", known.kind, " is not one of fdl_kind"));
  }
  Request request;
  request.kind = *kind;
  RETURN_IF_ERROR(NameRequest(*kind == OperationKind::kJoin ? kJoinName : known.name, &request));
  request.priority = known.priority;
  if (*kind == OperationKind::kJoin || *kind == OperationKind::kBarrier) return request;
  fdl_tensor tensor{sizeof(fdl_tensor), known.input, known.output, known.shape, known.dims, known.dtype};
  RETURN_IF_ERROR(DescribeTensor(tensor, &request));
  request.root = known.peer;
  if (*kind == OperationKind::kAllReduce || *kind == OperationKind::kReduceScatter) {
    RETURN_IF_ERROR(DescribeReduction({sizeof(fdl_reduce_args), known.op, known.prescale, known.postscale}, &request));
  }
  if (*kind == OperationKind::kAllToAll && known.splits != nullptr) {
    if (known.splits_count < 0) {
      return absl::InvalidArgumentError(absl::StrCat(request.name, ": ", known.splits_count, " splits"));
    }
    request.splits.assign(known.splits, known.splits + known.splits_count);
  }
  return request;
}

}  // namespace

absl::StatusOr<KnownRequests> ToRequests(const fdl_request* requests, int32_t count) {
  if (requests == nullptr || count <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(count, " operations: there must be one or more"));
  }
  // The caller's array has the caller's stride.
  const auto* next = reinterpret_cast<const char*>(requests);
  const size_t stride = requests->struct_size;
  KnownRequests result;
  for (int32_t i = 0; i < count; ++i, next += stride) {
    const auto* given = reinterpret_cast<const fdl_request*>(next);
    ASSIGN_OR_RETURN(const fdl_request known,
                     ReadStruct(given, SIZE_WITH(fdl_request, priority), fdl_request{}, "fdl_request"));
    if (known.struct_size != stride || (i > 0 && known.process_set != result.process_set)) {
      return absl::InvalidArgumentError(
          absl::StrCat("fdl_request number ", i, " has another struct_size or process set than the first one"));
    }
    result.process_set = known.process_set;
    ASSIGN_OR_RETURN(Request request, ToRequest(known));
    result.requests.push_back(std::move(request));
  }
  return result;
}

absl::Status GiveResult(const Result& from, fdl_result_info* to) {
  if (to == nullptr || to->struct_size < sizeof(size_t)) {
    return absl::InvalidArgumentError("fdl_result_info is NULL or has no struct_size");
  }
  const fdl_result_info known{
      to->struct_size, from.output.data(), from.output.size(), from.rows.data(), static_cast<int32_t>(from.rows.size()),
      from.last_joined};
  std::memcpy(to, &known, std::min(to->struct_size, sizeof known));
  return absl::OkStatus();
}

absl::StatusOr<Request> ToAllGather(const char* name, const fdl_tensor* tensor) {
  return ToRequest(OperationKind::kAllGather, name, tensor);
}

absl::StatusOr<Request> ToBroadcast(const char* name, const fdl_tensor* tensor, int32_t root) {
  ASSIGN_OR_RETURN(Request request, ToRequest(OperationKind::kBroadcast, name, tensor));
  request.root = root;
  return request;
}

absl::StatusOr<Request> ToBarrier(const char* name) {
  Request request;
  request.kind = OperationKind::kBarrier;
  RETURN_IF_ERROR(NameRequest(name, &request));
  return request;
}

}  // namespace farandole
