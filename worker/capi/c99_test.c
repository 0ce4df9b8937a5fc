/* The whole interface from plain C, as a group of one. Also the proof that farandole.h is C99 (copts). */
#include <stdio.h>
#include <string.h>

#include "worker/capi/farandole.h"

#define REQUIRE(condition)                                                                                            \
  do {                                                                                                                \
    if (!(condition)) {                                                                                               \
      fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__, __LINE__, #condition, fdl_last_error()); \
      return 1;                                                                                                       \
    }                                                                                                                 \
  } while (0)

static fdl_tensor tensor_of(const float* input, float* output, const int64_t* shape) {
  fdl_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.input = input;
  tensor.output = output;
  tensor.shape = shape;
  tensor.dims = 1;
  tensor.dtype = FDL_FLOAT32;
  return tensor;
}

int main(void) {
  const int64_t shape[1] = {3};
  const float input[3] = {1, 2, 3};
  float output[3] = {0, 0, 0};
  float second[3] = {0, 0, 0};
  const char* names[2] = {"c.first", "c.second"};
  fdl_tensor tensors[2];
  fdl_reduce_args reduction = {sizeof(fdl_reduce_args), FDL_SUM, 2.0, 1.0};
  fdl_init_args args = {sizeof(fdl_init_args), 30.0};
  fdl_handle handles[2];
  fdl_handle handle = 0;
  const void* gathered = NULL;
  int64_t bytes = 0;
  const int64_t* first_dims = NULL;

  REQUIRE(fdl_abi_version() == FDL_ABI_VERSION);
  REQUIRE(strlen(fdl_version()) > 0);
  REQUIRE(fdl_is_initialized() == 0);
  REQUIRE(fdl_rank() == -1);
  REQUIRE(fdl_init(&args) == FDL_OK);
  REQUIRE(fdl_is_initialized() == 1);
  REQUIRE(fdl_rank() == 0 && fdl_size() == 1);
  REQUIRE(fdl_local_rank() == 0 && fdl_local_size() == 1);
  REQUIRE(fdl_cross_rank() == 0 && fdl_cross_size() == 1);
  REQUIRE(fdl_is_homogeneous() == 1);

  tensors[0] = tensor_of(input, output, shape);
  tensors[1] = tensor_of(input, second, shape);
  REQUIRE(fdl_allreduce("c.one", &tensors[0], &reduction, &handle) == FDL_OK && handle != 0);
  REQUIRE(fdl_wait(handle, -1.0) == FDL_OK);
  REQUIRE(fdl_poll(handle) == 1);
  REQUIRE(fdl_release(handle) == FDL_OK);
  REQUIRE(output[0] == 2 && output[1] == 4 && output[2] == 6);

  REQUIRE(fdl_grouped_allreduce(names, tensors, 2, &reduction, handles) == FDL_OK);
  REQUIRE(fdl_wait(handles[0], 30.0) == FDL_OK && fdl_wait(handles[1], 30.0) == FDL_OK);
  REQUIRE(fdl_release(handles[0]) == FDL_OK && fdl_release(handles[1]) == FDL_OK);
  REQUIRE(second[2] == 6);

  REQUIRE(fdl_allgather("c.gather", &tensors[0], &handle) == FDL_OK);
  REQUIRE(fdl_wait(handle, 30.0) == FDL_OK);
  REQUIRE(fdl_gathered(handle, &gathered, &bytes, &first_dims) == FDL_OK);
  REQUIRE(bytes == 12 && first_dims[0] == 3 && memcmp(gathered, input, sizeof input) == 0);
  REQUIRE(fdl_release(handle) == FDL_OK);

  REQUIRE(fdl_broadcast("c.broadcast", &tensors[0], 0, &handle) == FDL_OK);
  REQUIRE(fdl_wait(handle, 30.0) == FDL_OK && fdl_release(handle) == FDL_OK);
  REQUIRE(output[1] == 2);
  REQUIRE(fdl_barrier("c.barrier", &handle) == FDL_OK);
  REQUIRE(fdl_wait(handle, 30.0) == FDL_OK && fdl_release(handle) == FDL_OK);

  REQUIRE(fdl_poll(handle) == -1);
  REQUIRE(fdl_wait(handle, 0.0) == FDL_NOT_FOUND && strlen(fdl_last_error()) > 0);
  REQUIRE(fdl_shutdown() == FDL_OK);
  REQUIRE(fdl_is_initialized() == 0);
  return 0;
}
