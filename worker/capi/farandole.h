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
  FDL_INT8 = 1,
  FDL_UINT16 = 2,
  FDL_INT16 = 3,
  FDL_INT32 = 4,
  FDL_INT64 = 5,
  FDL_FLOAT16 = 6,
  FDL_FLOAT32 = 7,
  FDL_FLOAT64 = 8,
  FDL_BOOL = 9, /* one byte; sum and max are "or", product and min "and"; no average */
  FDL_BFLOAT16 = 10
} fdl_dtype;

typedef enum fdl_reduce_op {
  FDL_AVERAGE = 0,
  FDL_SUM = 1,
  FDL_ADASUM = 2, /* floating point only, each tensor by itself */
  FDL_MIN = 3,
  FDL_MAX = 4,
  FDL_PRODUCT = 5
} fdl_reduce_op;

typedef enum fdl_kind {
  FDL_ALLREDUCE = 0,
  FDL_ALLGATHER = 1,
  FDL_BROADCAST = 2,
  FDL_JOIN =
      3, /* this rank has nothing more to give: it gives nothing to what the others ask for, until all have joined */
  FDL_ALLTOALL = 5,
  FDL_BARRIER = 6,
  FDL_REDUCESCATTER = 7,
  FDL_SEND = 8, /* with FDL_RECEIVE under the same name on another rank */
  FDL_RECEIVE = 9
} fdl_kind;

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

/* An operation of any kind, for fdl_begin. Set it to zero first, then what its kind needs. */
typedef struct fdl_request {
  size_t struct_size;
  int32_t kind;        /* fdl_kind */
  int32_t process_set; /* 0: all ranks */
  const char* name;    /* join: may be NULL */
  const void* input;   /* all but join, barrier and receive */
  void* output;        /* allreduce, broadcast, receive; the others give their result to fdl_result */
  const int64_t* shape;
  int32_t dims;
  int32_t dtype; /* fdl_dtype */
  int32_t op;    /* allreduce, reducescatter: fdl_reduce_op */
  int32_t peer;  /* broadcast: whose data; send: to whom; receive: from whom; its rank among all */
  double
      prescale; /* allreduce, reducescatter: output = postscale * op(prescale * input); 1 if it is not to be scaled */
  double postscale;
  const int64_t* splits; /* alltoall: rows for each rank, in order; NULL: the same number for all */
  int32_t splits_count;
  int32_t priority; /* what is ready with a higher one goes first */
} fdl_request;

/* What an operation has given, apart from `output`. */
typedef struct fdl_result_info {
  size_t struct_size;
  const void* data; /* allgather, alltoall, reducescatter; owned by the handle, until fdl_release */
  int64_t bytes;
  const int64_t* rows; /* by rank: allgather: the first dimension there; alltoall: rows that came from there;
                          reducescatter: rows that it gets */
  int32_t rows_count;
  int32_t last_joined; /* join: the rank that joined last; else -1 */
} fdl_result_info;

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

/* Begins `count` operations of one process set, which run together; `handles` has room for all. The functions above are
 * short forms of this one. Each request has the struct_size of the first. */
FDL_EXPORT fdl_code fdl_begin(const fdl_request* requests, int32_t count, fdl_handle* handles);

/* Process sets: some of the ranks, who run operations among themselves. Set 0, of all ranks, is always there. All ranks
 * of the job make the same changes in the same order, whether they are in the set or not; each call blocks until all
 * have made it. FDL_DEADLINE_EXCEEDED after `timeout_seconds` (negative: for ever): call again to go on waiting. */
FDL_EXPORT fdl_code fdl_add_process_set(const int32_t* ranks, int32_t count, double timeout_seconds, int32_t* id);
FDL_EXPORT fdl_code fdl_remove_process_set(int32_t id, double timeout_seconds);
/* How many ranks set `id` has, and which: as many as there is room for. -1: there is no such set. */
FDL_EXPORT int32_t fdl_process_set_ranks(int32_t id, int32_t* ranks, int32_t room);
/* How many sets there are, and their numbers, as many as there is room for. -1: not initialised. */
FDL_EXPORT int32_t fdl_process_set_ids(int32_t* ids, int32_t room);

/* 1 when finished (well or not), 0 when not, -1 for an unknown handle. */
FDL_EXPORT int32_t fdl_poll(fdl_handle handle);

/* Waits until the operation has finished and returns its result: FDL_OK, or why it failed. FDL_DEADLINE_EXCEEDED after
 * `timeout_seconds` (negative: for ever): the operation goes on and may be waited for again. */
FDL_EXPORT fdl_code fdl_wait(fdl_handle handle, double timeout_seconds);

/* What an allgather that finished with FDL_OK has gathered: *data (owned by the handle, until fdl_release), *bytes, and
 * the first dimension of every rank, `size` numbers. Any of the pointers may be NULL. */
FDL_EXPORT fdl_code fdl_gathered(fdl_handle handle, const void** data, int64_t* bytes, const int64_t** first_dims);

/* The same for every kind of operation: fills what result->struct_size has room for. */
FDL_EXPORT fdl_code fdl_result(fdl_handle handle, fdl_result_info* result);

/* Forgets the handle. An unfinished operation goes on to its end: its tensors stay borrowed until then. */
FDL_EXPORT fdl_code fdl_release(fdl_handle handle);

#ifdef __cplusplus
}
#endif

#endif /* FARANDOLE_WORKER_CAPI_FARANDOLE_H_ */
