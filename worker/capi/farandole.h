/* The C interface of Farandole: the one native border of a worker. Python, and any other language, sees only this file.
 *
 * Rules
 * - Plain C99. Fields of structs are only ever appended; a caller sets struct_size to the size it was compiled with and
 * the library reads and writes no further. Enumerators never change their value. Nothing is removed within
 * FDL_ABI_VERSION.
 * - Every function may be called from any thread, unless its comment says otherwise. None may be called in a child made
 * by fork(): those return FDL_FAILED_PRECONDITION (a child that calls exec is of course another process).
 * - Pointers given in are borrowed: for the call, or for tensors until the operation's handle has finished.
 * - On any result but FDL_OK, fdl_last_error() says why, in words for a person.
 */
#ifndef FARANDOLE_WORKER_CAPI_FARANDOLE_H_
#define FARANDOLE_WORKER_CAPI_FARANDOLE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FDL_ABI_VERSION 1

#if defined(__GNUC__)
#define FDL_EXPORT __attribute__((visibility("default")))
#else
#define FDL_EXPORT
#endif

/* Values equal absl::StatusCode. */
typedef enum fdl_code {
  FDL_OK = 0,
  FDL_CANCELLED = 1,
  FDL_UNKNOWN = 2,
  FDL_INVALID_ARGUMENT = 3,  /* this call's own arguments */
  FDL_DEADLINE_EXCEEDED = 4, /* a wait that gave up; what was waited for goes on */
  FDL_NOT_FOUND = 5,         /* no such handle */
  FDL_RESOURCE_EXHAUSTED = 8,
  FDL_FAILED_PRECONDITION = 9, /* not initialised, in a forked child, or the ranks disagree about an operation */
  FDL_ABORTED = 10,            /* the group was shut down */
  FDL_UNIMPLEMENTED = 12,
  FDL_INTERNAL = 13,
  FDL_UNAVAILABLE = 14 /* a peer or the agent was lost */
} fdl_code;

typedef enum fdl_dtype {
  FDL_UINT8 = 0,
  FDL_INT32 = 4,
  FDL_INT64 = 5,
  FDL_FLOAT16 = 6,
  FDL_FLOAT32 = 7,
  FDL_FLOAT64 = 8,
  FDL_BFLOAT16 = 10
} fdl_dtype;

typedef enum fdl_reduce_op { FDL_AVERAGE = 0, FDL_SUM = 1, FDL_MIN = 3, FDL_MAX = 4, FDL_PRODUCT = 5 } fdl_reduce_op;

/* An operation that was enqueued. Never zero. Lives until fdl_release. */
typedef uint64_t fdl_handle;

/* A tensor in the memory of this process, C-contiguous. */
typedef struct fdl_tensor {
  size_t struct_size;
  const void* input;    /* never written, unless it is `output` */
  void* output;         /* as large as `input`, may be it; NULL for allgather */
  const int64_t* shape; /* borrowed for the call; `dims` numbers */
  int32_t dims;         /* 0: a scalar */
  int32_t dtype;        /* fdl_dtype */
} fdl_tensor;

/* How tensors are reduced. */
typedef struct fdl_reduce_args {
  size_t struct_size;
  int32_t op; /* fdl_reduce_op */
  double prescale;
  double postscale; /* output = postscale * op(prescale * input) */
} fdl_reduce_args;

typedef struct fdl_init_args {
  size_t struct_size;
  /* How long to wait for the other ranks; negative: for ever. When it has passed: FDL_DEADLINE_EXCEEDED, not
   * initialised. */
  double timeout_seconds;
} fdl_init_args;

/* FDL_ABI_VERSION of the library. */
FDL_EXPORT int32_t fdl_abi_version(void);
/* The project's version, "0.1.0"; static. */
FDL_EXPORT const char* fdl_version(void);

/* Why the last call on this thread that did not return FDL_OK failed. Valid until this thread's next fdl_ call. */
FDL_EXPORT const char* fdl_last_error(void);

/* Joins the job that this process was started in and blocks until all ranks have. Outside of a job (FARANDOLE_AGENT is
 * not in the environment) this process is a group of one. When initialised already: FDL_OK, nothing happens. `args` may
 * be NULL. It waits in slices and can be called again after FDL_DEADLINE_EXCEEDED: the wait goes on where it was.
 */
FDL_EXPORT fdl_code fdl_init(const fdl_init_args* args);

/* Leaves the group in order: what all ranks have asked for is finished, the rest fails with FDL_ABORTED on every rank.
 * May be called when not initialised. After it fdl_init may be called again. In a forked child: nothing, FDL_OK. */
FDL_EXPORT fdl_code fdl_shutdown(void);

/* 1 between fdl_init and fdl_shutdown in this very process, else 0. */
FDL_EXPORT int32_t fdl_is_initialized(void);

/* Places; -1 when not initialised. */
FDL_EXPORT int32_t fdl_rank(void);
FDL_EXPORT int32_t fdl_size(void);
FDL_EXPORT int32_t fdl_local_rank(void);
FDL_EXPORT int32_t fdl_local_size(void);
FDL_EXPORT int32_t fdl_cross_rank(void);
FDL_EXPORT int32_t fdl_cross_size(void);
/* 1 when every host has the same number of ranks, 0 when not, -1 when not initialised. */
FDL_EXPORT int32_t fdl_is_homogeneous(void);

/* Begin an operation under `name`, which all ranks use for it and which is unique among this rank's unfinished
 * operations. On FDL_OK, *handle is the operation; otherwise nothing was begun. They do not block.
 *
 * The forms for several tensors run them together: `handles` has room for `count`, and names are made by the caller.
 */
FDL_EXPORT fdl_code fdl_allreduce(const char* name, const fdl_tensor* tensor, const fdl_reduce_args* args,
                                  fdl_handle* handle);
FDL_EXPORT fdl_code fdl_grouped_allreduce(const char* const* names, const fdl_tensor* tensors, int32_t count,
                                          const fdl_reduce_args* args, fdl_handle* handles);
/* Concatenates along the first dimension, which may differ between ranks. The result is read with fdl_gathered. */
FDL_EXPORT fdl_code fdl_allgather(const char* name, const fdl_tensor* tensor, fdl_handle* handle);
FDL_EXPORT fdl_code fdl_broadcast(const char* name, const fdl_tensor* tensor, int32_t root, fdl_handle* handle);
FDL_EXPORT fdl_code fdl_barrier(const char* name, fdl_handle* handle);

/* 1 when finished (well or not), 0 when not, -1 for an unknown handle. */
FDL_EXPORT int32_t fdl_poll(fdl_handle handle);

/* Waits until the operation has finished and returns its result: FDL_OK, or why it failed. FDL_DEADLINE_EXCEEDED after
 * `timeout_seconds` (negative: for ever): the operation goes on and may be waited for again. */
FDL_EXPORT fdl_code fdl_wait(fdl_handle handle, double timeout_seconds);

/* What an allgather that finished with FDL_OK has gathered: *data (owned by the handle, until fdl_release), *bytes, and
 * the first dimension of every rank, `size` numbers. Any of the pointers may be NULL. */
FDL_EXPORT fdl_code fdl_gathered(fdl_handle handle, const void** data, int64_t* bytes, const int64_t** first_dims);

/* Forgets the handle. An unfinished operation goes on to its end: its tensors stay borrowed until then. */
FDL_EXPORT fdl_code fdl_release(fdl_handle handle);

#ifdef __cplusplus
}
#endif

#endif /* FARANDOLE_WORKER_CAPI_FARANDOLE_H_ */
