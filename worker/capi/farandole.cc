#include "worker/capi/farandole.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "openssl/crypto.h"
#include "tools/base/status_macros.h"
#include "tools/base/version.h"
#include "worker/capi/arguments.h"
#include "worker/runtime/fork_guard.h"
#include "worker/runtime/worker_runtime.h"

namespace farandole {
namespace {

thread_local std::string last_error;

// The process's one worker. Never destroyed: its threads may run until the process is gone, and in a forked child there
// are none that a destructor could join.
WorkerRuntime& Worker() {
  static WorkerRuntime* const worker = new WorkerRuntime([](const char* name) { return std::getenv(name); });
  return *worker;
}

// What must hold before the library has threads. Repeatable.
void PrepareProcess() {
  WatchForks();
  // A process may end without fdl_shutdown. Its end must not pull OpenSSL's tables away from under threads of ours that
  // end at the same moment (seen: "double free or corruption", about once in a few hundred exits).
  ::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

absl::Status CheckProcess() {
  if (!InForkedChild()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this process was forked from a worker and has no part in its group; only the worker itself can use it");
}

fdl_code Report(const absl::Status& status) {
  if (!status.ok()) last_error = std::string(status.message());
  return static_cast<fdl_code>(status.code());
}

// Every function below: not in a forked child, then `work`, whose error becomes the thread's last one.
template <typename Work>
fdl_code Call(Work work) {
  absl::Status status = CheckProcess();
  if (status.ok()) status = work();
  return Report(status);
}

// As Call, for functions that answer with a number: -1 is an error.
template <typename Work>
int32_t Ask(Work work) {
  const absl::Status process = CheckProcess();
  const absl::StatusOr<int32_t> answer = process.ok() ? work() : absl::StatusOr<int32_t>(process);
  if (answer.ok()) return *answer;
  Report(answer.status());
  return -1;
}

int32_t AskPlace(int32_t (*pick)(const Place&)) {
  return Ask([&]() -> absl::StatusOr<int32_t> {
    const auto place = Worker().place();
    if (!place.has_value()) return absl::FailedPreconditionError("not initialised: call init first");
    return pick(*place);
  });
}

absl::Status Begin(std::vector<Request> requests, fdl_handle* handles, int32_t process_set = 0) {
  if (handles == nullptr) return absl::InvalidArgumentError("there is no room for the handle: the pointer is NULL");
  ASSIGN_OR_RETURN(const std::vector<Handle> begun, Worker().Enqueue(std::move(requests), process_set));
  std::copy(begun.begin(), begun.end(), handles);
  return absl::OkStatus();
}

absl::Status Begin(absl::StatusOr<Request> request, fdl_handle* handle) {
  RETURN_IF_ERROR(request.status());
  std::vector<Request> requests;
  requests.push_back(*std::move(request));
  return Begin(std::move(requests), handle);
}

int32_t CopyOut(const std::vector<int>& numbers, int32_t* to, int32_t room) {
  const auto count = static_cast<int32_t>(numbers.size());
  if (to != nullptr) std::copy_n(numbers.begin(), std::clamp(room, 0, count), to);
  return count;
}

}  // namespace
}  // namespace farandole

using namespace farandole;

extern "C" {

int32_t fdl_abi_version(void) { return FDL_ABI_VERSION; }

const char* fdl_version(void) { return kVersion; }

const char* fdl_last_error(void) { return last_error.c_str(); }

fdl_code fdl_init(const fdl_init_args* args) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Instant deadline, ToDeadline(args));
    PrepareProcess();
    return Worker().Init(deadline);
  });
}

fdl_code fdl_shutdown(void) {
  if (!InForkedChild()) Worker().Shutdown();
  return FDL_OK;
}

int32_t fdl_is_initialized(void) { return !InForkedChild() && Worker().place().has_value() ? 1 : 0; }

int32_t fdl_rank(void) {
  return AskPlace([](const Place& place) { return place.rank; });
}
int32_t fdl_size(void) {
  return AskPlace([](const Place& place) { return place.size; });
}
int32_t fdl_local_rank(void) {
  return AskPlace([](const Place& place) { return place.local_rank; });
}
int32_t fdl_local_size(void) {
  return AskPlace([](const Place& place) { return place.local_size; });
}
int32_t fdl_cross_rank(void) {
  return AskPlace([](const Place& place) { return place.cross_rank; });
}
int32_t fdl_cross_size(void) {
  return AskPlace([](const Place& place) { return place.cross_size; });
}
int32_t fdl_is_homogeneous(void) {
  return AskPlace([](const Place& place) { return place.homogeneous ? 1 : 0; });
}

fdl_code fdl_allreduce(const char* name, const fdl_tensor* tensor, const fdl_reduce_args* args, fdl_handle* handle) {
  return fdl_grouped_allreduce(&name, tensor, 1, args, handle);
}

fdl_code fdl_grouped_allreduce(const char* const* names, const fdl_tensor* tensors, int32_t count,
                               const fdl_reduce_args* args, fdl_handle* handles) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<Request> requests, ToAllReduces(names, tensors, count, args));
    return Begin(std::move(requests), handles);
  });
}

fdl_code fdl_allgather(const char* name, const fdl_tensor* tensor, fdl_handle* handle) {
  return Call([&] { return Begin(ToAllGather(name, tensor), handle); });
}

fdl_code fdl_broadcast(const char* name, const fdl_tensor* tensor, int32_t root, fdl_handle* handle) {
  return Call([&] { return Begin(ToBroadcast(name, tensor, root), handle); });
}

fdl_code fdl_barrier(const char* name, fdl_handle* handle) {
  return Call([&] { return Begin(ToBarrier(name), handle); });
}

fdl_code fdl_begin(const fdl_request* requests, int32_t count, fdl_handle* handles) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(KnownRequests known, ToRequests(requests, count));
    return Begin(std::move(known.requests), handles, known.process_set);
  });
}

fdl_code fdl_add_process_set(const int32_t* ranks, int32_t count, double timeout_seconds, int32_t* id) {
  return Call([&]() -> absl::Status {
    if (ranks == nullptr || count < 0 || id == nullptr) {
      return absl::InvalidArgumentError("a process set needs a list of ranks, and room for its number");
    }
    ASSIGN_OR_RETURN(const Instant deadline, ToDeadline(timeout_seconds));
    ASSIGN_OR_RETURN(*id, Worker().AddProcessSet({ranks, ranks + count}, deadline));
    return absl::OkStatus();
  });
}

fdl_code fdl_remove_process_set(int32_t id, double timeout_seconds) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Instant deadline, ToDeadline(timeout_seconds));
    return Worker().RemoveProcessSet(id, deadline);
  });
}

int32_t fdl_process_set_ranks(int32_t id, int32_t* ranks, int32_t room) {
  return Ask([&]() -> absl::StatusOr<int32_t> {
    const auto member = Worker().membership();
    const std::vector<Rank> all = member == nullptr ? std::vector<Rank>() : member->RanksOf(id);
    if (all.empty()) return absl::InvalidArgumentError(absl::StrCat("there is no process set ", id));
    return CopyOut(all, ranks, room);
  });
}

int32_t fdl_process_set_ids(int32_t* ids, int32_t room) {
  return Ask([&]() -> absl::StatusOr<int32_t> {
    const auto member = Worker().membership();
    if (member == nullptr) return absl::FailedPreconditionError("not initialised: call init first");
    return CopyOut(member->ids(), ids, room);
  });
}

int32_t fdl_poll(fdl_handle handle) {
  return Ask([&]() -> absl::StatusOr<int32_t> {
    ASSIGN_OR_RETURN(const bool finished, Worker().handles().Poll(handle));
    return finished ? 1 : 0;
  });
}

fdl_code fdl_wait(fdl_handle handle, double timeout_seconds) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Instant deadline, ToDeadline(timeout_seconds));
    return Worker().handles().Wait(handle, deadline);
  });
}

fdl_code fdl_gathered(fdl_handle handle, const void** data, int64_t* bytes, const int64_t** first_dims) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Result* result, Worker().handles().ResultOf(handle));
    if (data != nullptr) *data = result->output.data();
    if (bytes != nullptr) *bytes = result->output.size();
    if (first_dims != nullptr) *first_dims = result->rows.data();
    return absl::OkStatus();
  });
}

fdl_code fdl_result(fdl_handle handle, fdl_result_info* result) {
  return Call([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Result* known, Worker().handles().ResultOf(handle));
    return GiveResult(*known, result);
  });
}

fdl_code fdl_release(fdl_handle handle) {
  return Call([&] { return Worker().handles().Release(handle); });
}

}  // extern "C"
