"""Farandole for PyTorch, with the interface of horovod.torch.

    import farandole.torch as hvd        (or: import horovod.torch as hvd)

    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

Works with PyTorch 1.10 and newer. Importing it does not load the native library.
"""

from farandole import _later
from farandole.basics import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from farandole.errors import HorovodInternalError, HostsUpdatedInterrupt
from farandole.process_sets import ProcessSet, add_process_set, global_process_set, remove_process_set
from farandole.torch import elastic
from farandole.torch._autograd import (
    allgather,
    allreduce,
    alltoall,
    broadcast,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    reducescatter,
)
from farandole.torch.compression import Compression
from farandole.torch.functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from farandole.torch.ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather_async,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall_async,
    barrier,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather_async,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter_async,
    join,
    poll,
    reducescatter_async,
    sparse_allreduce_async,
    synchronize,
)
from farandole.torch.optimizer import DistributedOptimizer

SyncBatchNorm = _later.type_("SyncBatchNorm")

__all__ = [name for name in dir() if not name.startswith("_")]
