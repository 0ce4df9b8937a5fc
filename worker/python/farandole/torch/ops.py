"""The operations on tensors. Those that begin with an asynchronous call end with synchronize(handle).

All ranks must call the same operations under the same names, in any order. Without a name an operation is matched by
its number: then all ranks must call them in one order.

Tensors may be anywhere and of any layout but sparse; those that are not contiguous in host memory travel as copies.
Types: reduced are bool, 8-, 16-, 32- and 64-bit integers (unsigned: 8 and 16), float16, bfloat16, float32 and float64;
what is only moved may be complex as well. Sums of integers wrap around; a bool's Sum and Max are "or", Product and Min
"and", and it has no Average.

Errors of every function here:
    ValueError            not initialised, or this call's own arguments: a type, a name that is in use
    HorovodInternalError  from synchronize, so from the blocking forms too: the ranks disagree, or one was lost. It is
                          raised on all ranks; when they only disagreed, the next operation works.
"""

import warnings

import torch

from farandole import _handles, basics
from farandole._handles import poll, synchronize  # noqa: F401 (they belong to this interface)
from farandole.process_sets import global_process_set
from farandole.torch import _calls
from farandole.torch._calls import Call

Average = 0
Sum = 1
Adasum = 2
Min = 3
Max = 4
Product = 5
_OPS = (Average, Sum, Adasum, Min, Max, Product)


def reduce_op(op, average):
    """The operation that the arguments `op` and `average` mean together.

    ValueError: both are given, or `op` is none of the constants.
    """
    if average is not None:
        if op is not None:
            raise ValueError("The op parameter supersedes average. Please provide only one of them.")
        warnings.warn(
            "Parameter `average` has been replaced with `op` and will be removed", DeprecationWarning, stacklevel=3
        )
        return Average if average else Sum
    if op is None:
        return Average
    if op not in _OPS:
        raise ValueError("op must be one of hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max and hvd.Product, not %r" % (op,))
    return op


def _allreduce(tensor, in_place, average, name, op, prescale_factor, postscale_factor, process_set):
    call = Call("allreduce", name, process_set)
    op = reduce_op(op, average)
    return _calls.allreduce(call, False, [tensor], in_place, (op, prescale_factor, postscale_factor))


def _grouped_allreduce(tensors, in_place, average, name, op, prescale_factor, postscale_factor, process_set):
    call = Call("grouped_allreduce", name, process_set)
    op = reduce_op(op, average)
    return _calls.allreduce(call, True, list(tensors), in_place, (op, prescale_factor, postscale_factor))


def allreduce_async(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Begins to reduce `tensor` over all ranks into a new one: postscale_factor * op(prescale_factor * tensor).

    op: Average when not given. average: the old form of it, True for Average and False for Sum.
    """
    return _allreduce(tensor, False, average, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_async_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """As allreduce_async, into `tensor` itself."""
    return _allreduce(tensor, True, average, name, op, prescale_factor, postscale_factor, process_set)


def allreduce_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Reduces `tensor` over all ranks in place, and returns it. Not differentiable; allreduce is."""
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """As allreduce_async for several tensors, which are reduced together; synchronize() gives a list."""
    return _grouped_allreduce(tensors, False, average, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_async_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """As grouped_allreduce_async, into the tensors themselves."""
    return _grouped_allreduce(tensors, True, average, name, op, prescale_factor, postscale_factor, process_set)


def grouped_allreduce_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Reduces several tensors together, in place, and returns them."""
    return synchronize(
        grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set)
    )


def sparse_allreduce_async(tensor, name=None, op=None, process_set=global_process_set):
    """Begins to add up a sparse tensor over all ranks, or to average it. Returns a function that waits for it and
    returns the sum, coalesced.

    It is two allgathers, of indices and of values, so ranks may have any number of entries.
    """
    basics.need_library()
    number = _handles.take()
    op = reduce_op(op, None)
    if not tensor.is_sparse:
        raise ValueError("sparse_allreduce_async is for sparse tensors, not for %s" % tensor.type())
    tensor = tensor.detach().coalesce()
    base = "noname.%d" % number if name is None else name
    indices = allgather_async(tensor.indices().t().contiguous(), base + ".indices", process_set)
    values = allgather_async(tensor.values(), base + ".values", process_set)

    def finish():
        rows, entries = synchronize(indices), synchronize(values)
        if op == Average:
            entries = entries / process_set.size()
        return torch.sparse_coo_tensor(rows.t(), entries, tensor.shape).coalesce()

    return finish


def allgather_sized_async(grouped, tensors, name=None, process_set=global_process_set):
    """As allgather_async or, when `grouped`, grouped_allgather_async. synchronize() gives for each tensor the joined
    one and the list of every rank's first dimension."""
    call = Call("grouped_allgather" if grouped else "allgather", name, process_set)
    return _calls.allgather(call, grouped, list(tensors), list)


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Begins to join all ranks' tensors along the first dimension, in the order of ranks.

    Their first dimensions may differ, the others not. A scalar is a ValueError.
    """
    return _calls.allgather(Call("allgather", name, process_set), False, [tensor], lambda results: results[0][0])


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """As allgather_async for several tensors; synchronize() gives a list."""
    call = Call("grouped_allgather", name, process_set)
    return _calls.allgather(call, True, list(tensors), lambda results: [result for result, _ in results])


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Begins to bring the tensor of rank `root_rank` to all ranks, as a new one. Shape and type are the same
    everywhere."""
    return _calls.broadcast(Call("broadcast", name, process_set), tensor, False, root_rank)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """As broadcast_async, into `tensor` itself."""
    return _calls.broadcast(Call("broadcast", name, process_set), tensor, True, root_rank)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Overwrites `tensor` with that of rank `root_rank`, and returns it. Not differentiable; broadcast is."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Begins to send rows of `tensor` to all ranks: `splits[r]` of them, in order, to rank r of the set (a list, or a
    tensor of ints); without splits the same number to all. synchronize() gives the rows that came, in the order of
    ranks, and how many came from each, as an int32 tensor."""
    return _calls.alltoall(Call("alltoall", name, process_set), tensor, splits)


def reducescatter_async(
    tensor,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Begins to reduce `tensor` over all ranks, of which each gets a share of the rows: as even as can be, the first
    ranks one more."""
    call = Call("reducescatter", name, process_set)
    reduction = (reduce_op(op, None), prescale_factor, postscale_factor)
    return _calls.reducescatter(call, False, [tensor], reduction)


def grouped_reducescatter_async(
    tensors,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """As reducescatter_async for several tensors; synchronize() gives a list."""
    call = Call("grouped_reducescatter", name, process_set)
    reduction = (reduce_op(op, None), prescale_factor, postscale_factor)
    return _calls.reducescatter(call, True, list(tensors), reduction)


def barrier(process_set=global_process_set):
    """Blocks until all ranks are here."""
    synchronize(_calls.barrier(Call("barrier", None, process_set)))


def join(device=-1):
    """This rank has nothing more to give; blocks until all ranks have joined, and returns the one that joined last.

    Until then it takes part in what the others ask for: with zeros in sums, averages (which are still divided by the
    size of the group) and Adasum, without a trace in Min, Max and Product, and without rows in allgather and alltoall. A
    broadcast from a rank that has joined is an error. device: ignored.
    """
    return synchronize(_calls.join(Call("join", None, global_process_set)))
