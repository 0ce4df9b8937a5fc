// Times the allreduce of the C interface. Started by horovodrun, on every rank; see allreduce_loop.h.
#include <cstdint>
#include <cstdio>

#include "tests/bench/allreduce_loop.h"
#include "worker/capi/farandole.h"

namespace {

bool Succeeded(fdl_code code, const char* what) {
  if (code == FDL_OK) return true;
  std::fprintf(stderr, "rank %d: %s failed: %s\n", fdl_rank(), what, fdl_last_error());
  return false;
}

// Waits for what was begun with `begun` and forgets it.
bool Finish(fdl_code begun, const fdl_handle& handle, const char* what) {
  if (!Succeeded(begun, what)) return false;
  const bool finished = Succeeded(fdl_wait(handle, -1), what);
  return Succeeded(fdl_release(handle), what) && finished;
}

bool Allreduce(const float* in, float* out, size_t count) {
  const int64_t shape[] = {static_cast<int64_t>(count)};
  const fdl_tensor tensor = {sizeof(fdl_tensor), in, out, shape, 1, FDL_FLOAT32};
  const fdl_reduce_args args = {sizeof(fdl_reduce_args), FDL_SUM, 1.0, 1.0};
  fdl_handle handle = 0;
  const fdl_code begun = fdl_allreduce("bench", &tensor, &args, &handle);
  return Finish(begun, handle, "allreduce");
}

bool Barrier() {
  fdl_handle handle = 0;
  const fdl_code begun = fdl_barrier("bench.barrier", &handle);
  return Finish(begun, handle, "barrier");
}

}  // namespace

int main() {
  const fdl_init_args args = {sizeof(fdl_init_args), 60.0};
  if (!Succeeded(fdl_init(&args), "init")) return 1;
  const int code = farandole::bench::RunAllreduceCases(fdl_rank(), fdl_size(), Allreduce, Barrier);
  return Succeeded(fdl_shutdown(), "shutdown") ? code : 1;
}
