"""The operations and the basics under the name that scripts know; see farandole.torch.ops and farandole.basics."""

from torch.cuda import is_available as _check_has_gpu  # noqa: F401

from farandole.basics import (  # noqa: F401
    ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built, shutdown, size,
    start_timeline, stop_timeline,
)
from farandole.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set  # noqa: F401
from farandole.torch._autograd import allgather, allreduce, broadcast, grouped_allgather, grouped_allreduce  # noqa: F401
from farandole.torch.ops import (  # noqa: F401
    Adasum, Average, Max, Min, Product, Sum, allgather_async, allreduce_, allreduce_async, allreduce_async_, alltoall,
    alltoall_async, barrier, broadcast_, broadcast_async, broadcast_async_, grouped_allgather_async, grouped_allreduce_,
    grouped_allreduce_async, grouped_allreduce_async_, grouped_reducescatter, grouped_reducescatter_async, join, poll,
    reducescatter, reducescatter_async, sparse_allreduce_async, synchronize,
)
