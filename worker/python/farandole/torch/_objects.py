"""Any object, from one rank to all or from all to all."""

import io
import pickle

import torch

from farandole import basics
from farandole.process_sets import global_process_set
from farandole.torch import ops


def _dump(obj):
    """`obj` as a tensor of bytes. cloudpickle, where it is installed, also takes functions and classes of the
    script."""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    data = pickler.dumps(obj)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _load(data):
    return pickle.load(io.BytesIO(data.numpy().tobytes()))


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """The object of rank `root_rank`, on all ranks; what the others give is ignored. It is pickled; the root gets its
    own."""
    is_root = basics.rank() == root_rank
    data = _dump(obj) if is_root else None
    size = torch.tensor([len(data) if is_root else 0])
    ops.broadcast_(size, root_rank, None if name is None else name + ".sz", process_set)
    if not is_root:
        data = torch.empty(int(size), dtype=torch.uint8)
    ops.broadcast_(data, root_rank, None if name is None else name + ".t", process_set)
    return obj if is_root else _load(data)


def allgather_object(obj, name=None, process_set=global_process_set):
    """A list with every rank's object, in the order of ranks. They are pickled; this rank's is a copy, too."""
    handle = ops.allgather_sized_async(False, [_dump(obj)], None if name is None else name + ".t", process_set)
    ((data, sizes),) = ops.synchronize(handle)
    return [_load(part) for part in data.split(sizes)]
