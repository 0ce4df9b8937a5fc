#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/engine/request.h"
#include "tools/base/instant.h"
#include "worker/capi/farandole.h"

namespace farandole {

// Turns what C callers give into requests. Structs may be those of an older or newer farandole.h: no more is read than
// both sides know, and what an older one lacks has its default. All errors are InvalidArgument unless said otherwise,
// and name the argument.

// "now + seconds"; negative: never.
absl::StatusOr<Instant> ToDeadline(double timeout_seconds);

// NULL: for ever.
absl::StatusOr<Instant> ToDeadline(const fdl_init_args* args);

absl::StatusOr<std::vector<Request>> ToAllReduces(const char* const* names, const fdl_tensor* tensors, int32_t count,
                                                  const fdl_reduce_args* args);
absl::StatusOr<Request> ToAllGather(const char* name, const fdl_tensor* tensor);
absl::StatusOr<Request> ToBroadcast(const char* name, const fdl_tensor* tensor, int32_t root);
absl::StatusOr<Request> ToBarrier(const char* name);

struct KnownRequests {
  std::vector<Request> requests;
  int process_set = 0;
};
absl::StatusOr<KnownRequests> ToRequests(const fdl_request* requests, int32_t count);

// Fills what `to` has room for.
absl::Status GiveResult(const Result& from, fdl_result_info* to);

}  // namespace farandole
