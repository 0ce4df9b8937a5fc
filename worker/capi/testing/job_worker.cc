#include "worker/capi/testing/job_worker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tools/base/clock.h"
#include "worker/capi/farandole.h"

namespace {

bool in_forked_child = false;

}  // namespace

// Asked by LeakSanitizer at exit, where there is one. In a forked child it takes for leaks what the stacks of the
// parent's threads point to: those threads do not exist there.
extern "C" int __lsan_is_turned_off() { return in_forked_child ? 1 : 0; }

namespace farandole::testing {
namespace {

constexpr double kLong = 60.0;

#define REQUIRE(condition)                                                                                    \
  do {                                                                                                        \
    if (!(condition)) {                                                                                       \
      std::fprintf(stderr, "worker rank %d, %s:%d: %s does not hold; last error: %s\n", fdl_rank(), __FILE__, \
                   __LINE__, #condition, fdl_last_error());                                                   \
      return false;                                                                                           \
    }                                                                                                         \
  } while (false)

struct Tensor {
  explicit Tensor(std::vector<float> values) : data(std::move(values)), shape{static_cast<int64_t>(data.size())} {}
  fdl_tensor Describe() {
    return fdl_tensor{sizeof(fdl_tensor), data.data(), data.data(), shape.data(), 1, FDL_FLOAT32};
  }
  std::vector<float> data;
  std::vector<int64_t> shape;
};

fdl_code Finish(fdl_handle handle) {
  const fdl_code code = fdl_wait(handle, kLong);
  fdl_release(handle);
  return code;
}

fdl_code AllReduce(const char* name, Tensor* tensor) {
  const fdl_tensor description = tensor->Describe();
  const fdl_reduce_args sum = {sizeof(fdl_reduce_args), FDL_SUM, 1.0, 1.0};
  fdl_handle handle = 0;
  const fdl_code begun = fdl_allreduce(name, &description, &sum, &handle);
  return begun == FDL_OK ? Finish(handle) : begun;
}

bool Init() {
  const fdl_init_args args = {sizeof args, kLong};
  REQUIRE(fdl_init(&args) == FDL_OK);
  REQUIRE(fdl_is_initialized() == 1);
  return true;
}

// Every operation once, with what each rank must find.
bool RunOperations() {
  const int rank = fdl_rank();
  const int size = fdl_size();
  Tensor reduced({1.0f * rank, 2.0f});
  REQUIRE(AllReduce("sum", &reduced) == FDL_OK);
  REQUIRE(reduced.data[0] == size * (size - 1) / 2.0f && reduced.data[1] == 2.0f * size);

  Tensor mine(std::vector<float>(rank + 1, static_cast<float>(rank)));
  fdl_tensor description = mine.Describe();
  description.output = nullptr;
  fdl_handle handle = 0;
  REQUIRE(fdl_allgather("gather", &description, &handle) == FDL_OK);
  REQUIRE(fdl_wait(handle, kLong) == FDL_OK);
  const void* data = nullptr;
  int64_t bytes = 0;
  const int64_t* first_dims = nullptr;
  REQUIRE(fdl_gathered(handle, &data, &bytes, &first_dims) == FDL_OK);
  REQUIRE(bytes == static_cast<int64_t>(sizeof(float)) * size * (size + 1) / 2);
  const auto* next = static_cast<const float*>(data);
  for (int r = 0; r < size; ++r) {
    REQUIRE(first_dims[r] == r + 1);
    for (int i = 0; i <= r; ++i) REQUIRE(*next++ == static_cast<float>(r));
  }
  REQUIRE(fdl_release(handle) == FDL_OK);

  Tensor sent({rank == size - 1 ? 7.0f : 0.0f});
  description = sent.Describe();
  REQUIRE(fdl_broadcast("broadcast", &description, size - 1, &handle) == FDL_OK);
  REQUIRE(Finish(handle) == FDL_OK);
  REQUIRE(sent.data[0] == 7.0f);

  REQUIRE(fdl_barrier("barrier", &handle) == FDL_OK);
  REQUIRE(Finish(handle) == FDL_OK);
  return true;
}

fdl_request RequestOf(int32_t kind, const char* name, Tensor* tensor) {
  const fdl_tensor description = tensor->Describe();
  fdl_request request = {};
  request.struct_size = sizeof request;
  request.kind = kind;
  request.name = name;
  request.input = description.input;
  request.shape = description.shape;
  request.dims = description.dims;
  request.dtype = description.dtype;
  request.op = FDL_SUM;
  request.prescale = request.postscale = 1.0;
  return request;
}

// What came of it stays with the handle.
bool RunOne(const fdl_request& request, fdl_handle* handle, fdl_result_info* result) {
  REQUIRE(fdl_begin(&request, 1, handle) == FDL_OK);
  REQUIRE(fdl_wait(*handle, kLong) == FDL_OK);
  result->struct_size = sizeof *result;
  REQUIRE(fdl_result(*handle, result) == FDL_OK);
  return true;
}

// The kinds that only fdl_begin has.
bool RunOtherOperations(int32_t process_set, int rank, int size) {
  Tensor tensor(std::vector<float>(size, static_cast<float>(rank)));
  fdl_handle handle = 0;
  fdl_result_info result = {};
  fdl_request request = RequestOf(FDL_ALLTOALL, "alltoall", &tensor);
  request.process_set = process_set;
  REQUIRE(RunOne(request, &handle, &result));
  REQUIRE(result.bytes == static_cast<int64_t>(sizeof(float)) * size && result.rows_count == size);
  for (int r = 0; r < size; ++r) {
    REQUIRE(static_cast<const float*>(result.data)[r] == static_cast<float>(r) && result.rows[r] == 1);
  }
  REQUIRE(fdl_release(handle) == FDL_OK);

  request.kind = FDL_REDUCESCATTER;
  request.name = "reducescatter";
  REQUIRE(RunOne(request, &handle, &result));
  REQUIRE(static_cast<const float*>(result.data)[0] == size * (size - 1) / 2.0f);
  REQUIRE(fdl_release(handle) == FDL_OK);

  request.kind = FDL_JOIN;
  REQUIRE(RunOne(request, &handle, &result));
  REQUIRE(result.last_joined >= 0 && result.last_joined < fdl_size());
  REQUIRE(fdl_release(handle) == FDL_OK);
  return true;
}

bool RunSendAndReceive() {
  Tensor sent({5.0f, 6.0f}), received({0.0f, 0.0f});
  fdl_request request = RequestOf(FDL_SEND, "message", fdl_rank() == 0 ? &sent : &received);
  fdl_handle handle = 0;
  request.peer = 1;
  if (fdl_rank() == 1) {
    request.kind = FDL_RECEIVE;
    request.peer = 0;
    request.output = received.data.data();
  }
  if (fdl_rank() < 2) {
    REQUIRE(fdl_begin(&request, 1, &handle) == FDL_OK && Finish(handle) == FDL_OK);
  }
  REQUIRE(fdl_rank() != 1 || (received.data[0] == 5.0f && received.data[1] == 6.0f));
  return true;
}

bool OtherOperations() {
  REQUIRE(Init());
  REQUIRE(RunOtherOperations(0, fdl_rank(), fdl_size()));
  REQUIRE(RunSendAndReceive());
  REQUIRE(RunOperations());
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

// Two sets that overlap in the last rank; then one is removed, and its number is used again.
bool ProcessSets() {
  REQUIRE(Init());
  const int rank = fdl_rank(), size = fdl_size(), last = size - 1;
  const std::vector<int32_t> ends = {last, 0}, single = {last};
  int32_t of_ends = 0, of_single = 0;
  REQUIRE(fdl_add_process_set(ends.data(), 2, kLong, &of_ends) == FDL_OK && of_ends == 1);
  REQUIRE(fdl_add_process_set(single.data(), 1, kLong, &of_single) == FDL_OK && of_single == 2);
  REQUIRE(fdl_add_process_set(ends.data(), 2, kLong, &of_ends) == FDL_INVALID_ARGUMENT);
  int32_t ranks[2] = {};
  REQUIRE(fdl_process_set_ranks(of_ends, ranks, 2) == 2 && ranks[0] == 0 && ranks[1] == last);
  REQUIRE(fdl_process_set_ids(nullptr, 0) == 3 && fdl_process_set_ranks(9, nullptr, 0) == -1);
  if (rank == 0 || rank == last) {
    REQUIRE(RunOtherOperations(of_ends, rank == 0 ? 0 : 1, 2));
  } else {
    Tensor tensor({1.0f});
    fdl_request request = RequestOf(FDL_ALLREDUCE, "not mine", &tensor);
    request.output = tensor.data.data();
    request.process_set = of_ends;
    fdl_handle handle = 0;
    REQUIRE(fdl_begin(&request, 1, &handle) == FDL_INVALID_ARGUMENT);
    REQUIRE(std::strstr(fdl_last_error(), "is not in process set 1") != nullptr);
  }
  if (rank == last) {
    REQUIRE(RunOtherOperations(of_single, 0, 1));
  }
  REQUIRE(RunOperations());
  REQUIRE(fdl_remove_process_set(of_ends, kLong) == FDL_OK);
  REQUIRE(fdl_remove_process_set(0, kLong) == FDL_INVALID_ARGUMENT);
  const std::vector<int32_t> first = {0};
  REQUIRE(fdl_add_process_set(first.data(), 1, kLong, &of_ends) == FDL_OK && of_ends == 1);
  REQUIRE(RunOperations());
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

// The ranks want different sets: all are told, and go on.
bool ProcessSetsDiffer() {
  REQUIRE(Init());
  const std::vector<int32_t> mine = {fdl_rank()};
  int32_t id = 0;
  REQUIRE(fdl_add_process_set(mine.data(), 1, kLong, &id) == FDL_INVALID_ARGUMENT);
  REQUIRE(std::strstr(fdl_last_error(), "do not want the same") != nullptr);
  REQUIRE(RunOperations());
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

bool Operations() {
  REQUIRE(Init());
  REQUIRE(fdl_size() >= 2 && fdl_local_size() == fdl_size() && fdl_local_rank() == fdl_rank());
  REQUIRE(fdl_cross_rank() == 0 && fdl_cross_size() == 1 && fdl_is_homogeneous() == 1);
  REQUIRE(RunOperations());
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

// The ranks disagree about a shape; all of them are told, and go on.
bool Mismatch() {
  REQUIRE(Init());
  Tensor tensor(std::vector<float>(fdl_rank() == 1 ? 3 : 2));
  REQUIRE(AllReduce("loss", &tensor) == FDL_FAILED_PRECONDITION);
  const std::string error = fdl_last_error();
  REQUIRE(error.find("loss") != std::string::npos && error.find("[3]") != std::string::npos &&
          error.find("[2]") != std::string::npos);
  REQUIRE(RunOperations());
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

// Rank 0 leaves; what the others have asked for alone fails on them.
bool Shutdown() {
  REQUIRE(Init());
  if (fdl_rank() != 0) {
    Tensor tensor({1.0f});
    REQUIRE(AllReduce("never", &tensor) == FDL_ABORTED);
    REQUIRE(fdl_is_initialized() == 1);
  }
  REQUIRE(fdl_shutdown() == FDL_OK);
  REQUIRE(fdl_is_initialized() == 0);
  return true;
}

// Three generations, one after the other.
bool InitAgain() {
  for (int i = 0; i < 3; ++i) {
    REQUIRE(Init());
    REQUIRE(RunOperations());
    REQUIRE(fdl_shutdown() == FDL_OK);
    REQUIRE(fdl_rank() == -1);
  }
  return true;
}

// When init was called and when it returned, in nanoseconds of the machine's monotonic clock.
bool TimeInit() {
  const Instant called = Now();
  REQUIRE(Init());
  std::printf("%lld %lld\n", static_cast<long long>(called.nanos()), static_cast<long long>(Now().nanos()));
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

// init gives up in slices and goes on where it was.
bool InitInSlices() {
  const fdl_init_args slice = {sizeof slice, 0.01};
  fdl_code code = FDL_DEADLINE_EXCEEDED;
  const Instant end = Now() + absl::Seconds(kLong);
  while (code == FDL_DEADLINE_EXCEEDED && Now() < end) {
    REQUIRE(fdl_is_initialized() == 0);
    code = fdl_init(&slice);
  }
  REQUIRE(code == FDL_OK);
  REQUIRE(RunOperations());
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

// Says that it is ready, once all ranks are linked, and waits for what nobody else asks for, until something ends it
// with Unavailable.
bool WaitForLoss() {
  REQUIRE(Init());
  REQUIRE(RunOperations());
  std::printf("ready\n");
  std::fflush(stdout);
  Tensor tensor({1.0f});
  const std::string mine = "never." + std::to_string(fdl_rank());
  REQUIRE(AllReduce(mine.c_str(), &tensor) == FDL_UNAVAILABLE);
  REQUIRE(std::strlen(fdl_last_error()) > 0);
  REQUIRE(tensor.data[0] == 1.0f);
  REQUIRE(AllReduce("after", &tensor) != FDL_OK);
  REQUIRE(fdl_is_initialized() == 1);
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

bool LosePeer() { return WaitForLoss(); }

// After the loss of the agent a new start is refused with the reason.
bool LoseAgent() {
  REQUIRE(WaitForLoss());
  REQUIRE(fdl_init(nullptr) == FDL_UNAVAILABLE);
  REQUIRE(std::strstr(fdl_last_error(), "agent") != nullptr);
  REQUIRE(fdl_is_initialized() == 0);
  return true;
}

// Leaves init's threads running when main returns; which it does only when no rank needs another one any more.
bool ExitWithoutShutdown() {
  REQUIRE(Init());
  REQUIRE(RunOperations());
  std::printf("done\n");
  std::fflush(stdout);
  REQUIRE(std::getchar() == EOF);
  return true;
}

// Forked children end in each way while the parent trains on.
bool Fork() {
  REQUIRE(Init());
  for (const bool immediately : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      in_forked_child = true;
      const int code = fdl_rank() == -1 && fdl_shutdown() == FDL_OK ? 0 : 1;
      if (immediately) ::_exit(code);
      std::exit(code);
    }
    REQUIRE(RunOperations());
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  // Another program, as subprocess starts it.
  REQUIRE(std::system("exit 0") == 0);
  REQUIRE(RunOperations());
  REQUIRE(fdl_shutdown() == FDL_OK);
  return true;
}

}  // namespace

int RunJobWorker(const std::string& role) {
  const std::map<std::string, bool (*)()> roles = {
      {"operations", Operations},
      {"other_operations", OtherOperations},
      {"process_sets", ProcessSets},
      {"process_sets_differ", ProcessSetsDiffer},
      {"mismatch", Mismatch},
      {"shutdown", Shutdown},
      {"init_again", InitAgain},
      {"time_init", TimeInit},
      {"init_in_slices", InitInSlices},
      {"lose_agent", LoseAgent},
      {"lose_peer", LosePeer},
      {"no_shutdown", ExitWithoutShutdown},
      {"fork", Fork},
  };
  const auto found = roles.find(role);
  if (found == roles.end()) {
    std::fprintf(stderr, "no role %s\n", role.c_str());
    return 1;
  }
  return found->second() ? 0 : 1;
}

}  // namespace farandole::testing
