"""The operations on tensors. Those that begin with an asynchronous call end with synchronize(handle).

All ranks must call the same operations under the same names, in any order. Without a name an operation is matched by
its number: then all ranks must call them in one order.

Tensors may be anywhere and of any layout but sparse; those that are not contiguous in host memory travel as copies.
Types: reduced are uint8, int32, int64, float16, bfloat16, float32 and float64; gathered and broadcast are also bool,
int8, int16 and complex numbers.

Errors of every function here:
    ValueError            not initialised, or this call's own arguments: a type, a name that is in use
    NotImplementedError   a process set or an operation that this version does not have
    HorovodInternalError  from synchronize, so from the blocking forms too: the ranks disagree, or one was lost. It is
                          raised on all ranks; when they only disagreed, the next operation works.
"""

import ctypes
import warnings

import torch

from farandole import _handles, _later, _library, basics, errors
from farandole._handles import poll, synchronize  # noqa: F401 (they belong to this interface)
from farandole.process_sets import global_process_set, need_global
from farandole.torch import _tensors

Average = 0
Sum = 1
Adasum = 2
Min = 3
Max = 4
Product = 5
_OPS = (Average, Sum, Min, Max, Product)


def reduce_op(op, average):
    """The operation that the arguments `op` and `average` mean together.

    ValueError: both are given, or `op` is none of the constants. NotImplementedError: Adasum.
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
    if op == Adasum:
        raise _later.error("op=hvd.Adasum")
    if op not in _OPS:
        raise ValueError("op must be one of hvd.Average, hvd.Sum, hvd.Min, hvd.Max and hvd.Product, not %r" % (op,))
    return op


class _Call(object):
    """One call on its way to the native library: its number, wire name, and what it gives out."""

    def __init__(self, kind, name, process_set):
        self.library = basics.need_library()
        self.number = _handles.take()
        need_global(process_set)
        self.name = "%s.%s" % (kind, "noname.%d" % self.number if name is None else name)

    def names(self, count):
        """The wire names of the members of a group."""
        return [("%s_%dof%d" % (self.name, i + 1, count)).encode() for i in range(count)]

    def check(self, code):
        """Raises what `code` of a call that begins an operation means."""
        if code == errors.OK:
            return
        message = _library.last_error(self.library)
        basics.need_library()  # it may have been shut down in this moment
        raise errors.exception(code, message)

    def begun(self, native, keep, finish):
        """Remembers the operation; returns its number, the handle."""
        _handles.put(self.number, _handles.Operation(self.library, list(native), keep, finish))
        return self.number


def _reduce(call, names, tensors, in_place, op, prescale, postscale, unpack):
    for tensor in tensors:
        _tensors.check(tensor, reduce=True)
    if len({tensor.device for tensor in tensors}) > 1:
        raise ValueError("Tensors in list must be on same device.")
    count = len(tensors)
    sources = [_tensors.on_host(tensor) for tensor in tensors]
    targets = sources if in_place else [torch.empty_like(source) for source in sources]
    records = (_library.Tensor * count)()
    native = (ctypes.c_uint64 * count)()
    shapes = [_tensors.describe(*item) for item in zip(records, sources, targets)]
    args = _library.ReduceArgs(ctypes.sizeof(_library.ReduceArgs), op, float(prescale), float(postscale))
    if count:
        call.check(
            call.library.fdl_grouped_allreduce(
                (ctypes.c_char_p * count)(*names), records, count, ctypes.byref(args), native
            )
        )
    del shapes

    def finish(_):
        if in_place:
            return unpack([_tensors.give_back(*item) for item in zip(tensors, targets)])
        return unpack([target.to(tensor.device) for tensor, target in zip(tensors, targets)])

    return call.begun(native, (tensors, sources, targets), finish)


def _only(results):
    return results[0]


def _allreduce(tensor, in_place, average, name, op, prescale_factor, postscale_factor, process_set):
    call = _Call("allreduce", name, process_set)
    op = reduce_op(op, average)
    return _reduce(call, [call.name.encode()], [tensor], in_place, op, prescale_factor, postscale_factor, _only)


def _grouped_allreduce(tensors, in_place, average, name, op, prescale_factor, postscale_factor, process_set):
    call = _Call("grouped_allreduce", name, process_set)
    op = reduce_op(op, average)
    tensors = list(tensors)
    return _reduce(call, call.names(len(tensors)), tensors, in_place, op, prescale_factor, postscale_factor, list)


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
            entries = entries / basics.size()
        return torch.sparse_coo_tensor(rows.t(), entries, tensor.shape).coalesce()

    return finish


def _allgather(call, grouped, tensors, unpack):
    for tensor in tensors:
        _tensors.check(tensor, reduce=False)
        if tensor.dim() == 0:
            raise ValueError(
                "an allgather joins tensors along their first dimension, and a scalar has none; use "
                "tensor.reshape(1)"
            )
    names = call.names(len(tensors)) if grouped else [call.name.encode()]
    sources = [_tensors.on_host(tensor) for tensor in tensors]
    ranks = call.library.fdl_size()
    native = []

    def finish(operation):
        results = []
        for part, (tensor, source) in enumerate(zip(tensors, sources)):
            address, size, first_dims = operation.gathered(part, ranks)
            results.append((_tensors.gathered(source, address, size, first_dims).to(tensor.device), first_dims))
        return unpack(results)

    try:
        for name, source in zip(names, sources):
            record = _library.Tensor()
            handle = ctypes.c_uint64()
            shape = _tensors.describe(record, source, None)
            call.check(call.library.fdl_allgather(name, ctypes.byref(record), ctypes.byref(handle)))
            del shape
            native.append(handle.value)
    finally:  # after an error, those that were begun go on, and keep their tensors
        number = call.begun(native, (tensors, sources), finish)
    return number


def allgather_sized_async(grouped, tensors, name=None, process_set=global_process_set):
    """As allgather_async or, when `grouped`, grouped_allgather_async. synchronize() gives for each tensor the joined
    one and the list of every rank's first dimension."""
    call = _Call("grouped_allgather" if grouped else "allgather", name, process_set)
    return _allgather(call, grouped, list(tensors), list)


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Begins to join all ranks' tensors along the first dimension, in the order of ranks.

    Their first dimensions may differ, the others not. A scalar is a ValueError.
    """
    return _allgather(_Call("allgather", name, process_set), False, [tensor], lambda results: results[0][0])


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """As allgather_async for several tensors; synchronize() gives a list."""
    call = _Call("grouped_allgather", name, process_set)
    return _allgather(call, True, list(tensors), lambda results: [result for result, _ in results])


def _broadcast(tensor, in_place, root_rank, name, process_set):
    call = _Call("broadcast", name, process_set)
    _tensors.check(tensor, reduce=False)
    source = _tensors.on_host(tensor)
    target = source if in_place else torch.empty_like(source)
    record = _library.Tensor()
    handle = ctypes.c_uint64()
    shape = _tensors.describe(record, source, target)
    call.check(
        call.library.fdl_broadcast(call.name.encode(), ctypes.byref(record), int(root_rank), ctypes.byref(handle))
    )
    del shape

    def finish(_):
        return _tensors.give_back(tensor, target) if in_place else target.to(tensor.device)

    return call.begun([handle.value], (tensor, source, target), finish)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Begins to bring the tensor of rank `root_rank` to all ranks, as a new one. Shape and type are the same
    everywhere."""
    return _broadcast(tensor, False, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """As broadcast_async, into `tensor` itself."""
    return _broadcast(tensor, True, root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Overwrites `tensor` with that of rank `root_rank`, and returns it. Not differentiable; broadcast is."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def barrier(process_set=global_process_set):
    """Blocks until all ranks are here."""
    call = _Call("barrier", None, process_set)
    handle = ctypes.c_uint64()
    call.check(call.library.fdl_barrier(b"barrier.noname", ctypes.byref(handle)))
    synchronize(call.begun([handle.value], None, lambda _: None))


alltoall = _later.function("alltoall")
alltoall_async = _later.function("alltoall_async")
reducescatter = _later.function("reducescatter")
reducescatter_async = _later.function("reducescatter_async")
grouped_reducescatter = _later.function("grouped_reducescatter")
grouped_reducescatter_async = _later.function("grouped_reducescatter_async")
join = _later.function("join")
