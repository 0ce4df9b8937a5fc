"""The blocking operations that gradients flow through.

The operation of a gradient is named after the one that it belongs to, with ".gradient" behind, so that it does not
depend on what else a rank does meanwhile.
"""

import torch

from farandole import basics
from farandole.process_sets import global_process_set
from farandole.torch import ops
from farandole.torch.compression import Compression


def _gradient_name(name, handle):
    return "%s.gradient" % ("noname.%d" % handle if name is None else name)


class _AllReduce(torch.autograd.Function):
    """Reduced together: one tensor, or several as a group. The gradient is the same operation."""

    @staticmethod
    def forward(ctx, grouped, name, op, prescale, postscale, process_set, *tensors):
        rest = (None, name, op, prescale, postscale, process_set)
        if grouped:
            handle = ops.grouped_allreduce_async(tensors, *rest)
        else:
            handle = ops.allreduce_async(tensors[0], *rest)
        ctx.rest = (grouped, _gradient_name(name, handle), op, prescale, postscale, process_set)
        result = ops.synchronize(handle)
        return tuple(result) if grouped else result

    @staticmethod
    def backward(ctx, *gradients):
        result = _AllReduce.apply(*(ctx.rest + gradients))
        return (None,) * len(ctx.rest) + (result if ctx.rest[0] else (result,))


class _AllGather(torch.autograd.Function):
    """Gathered together: one tensor or several. The gradient is this rank's part of the averaged gradient."""

    @staticmethod
    def forward(ctx, grouped, name, process_set, *tensors):
        handle = ops.allgather_sized_async(grouped, tensors, name, process_set)
        ctx.rest = (grouped, _gradient_name(name, handle), ops.Average, 1.0, 1.0, process_set)
        results = ops.synchronize(handle)
        rank = process_set.rank()
        ctx.parts = [(sum(first_dims[:rank]), first_dims[rank]) for _, first_dims in results]
        return tuple(result for result, _ in results)

    @staticmethod
    def backward(ctx, *gradients):
        averaged = _AllReduce.apply(*(ctx.rest + gradients))
        averaged = averaged if ctx.rest[0] else (averaged,)
        return (None,) * 3 + tuple(gradient.narrow(0, *part) for gradient, part in zip(averaged, ctx.parts))


class _Broadcast(torch.autograd.Function):
    """The gradient is the averaged gradient on the root and zero elsewhere."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        handle = ops.broadcast_async(tensor, root_rank, name, process_set)
        ctx.name = _gradient_name(name, handle)
        ctx.process_set = process_set
        ctx.root_rank = root_rank
        return ops.synchronize(handle)

    @staticmethod
    def backward(ctx, gradient):
        averaged = allreduce(gradient, op=ops.Average, name=ctx.name, process_set=ctx.process_set)
        return averaged if basics.rank() == ctx.root_rank else averaged * 0, None, None, None


class _AllToAll(torch.autograd.Function):
    """The gradient goes back the same ways."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        handle = ops.alltoall_async(tensor, splits, name, process_set)
        ctx.name = _gradient_name(name, handle)
        ctx.process_set = process_set
        received, ctx.received_splits = ops.synchronize(handle)
        ctx.mark_non_differentiable(ctx.received_splits)
        return received, ctx.received_splits

    @staticmethod
    def backward(ctx, gradient, _):
        back, _ = _AllToAll.apply(gradient, ctx.received_splits, ctx.name, ctx.process_set)
        return back, None, None, None


class _ReduceScatter(torch.autograd.Function):
    """Reduced together: one tensor, or several as a group. The gradient is gathered from all ranks; of a sum it is
    multiplied by their number."""

    @staticmethod
    def forward(ctx, grouped, name, op, process_set, prescale, postscale, *tensors):
        if grouped:
            handle = ops.grouped_reducescatter_async(tensors, name, op, process_set, prescale, postscale)
        else:
            handle = ops.reducescatter_async(tensors[0], name, op, process_set, prescale, postscale)
        ctx.rest = (grouped, _gradient_name(name, handle), process_set)
        ctx.factor = process_set.size() if op == ops.Sum else 1
        result = ops.synchronize(handle)
        return tuple(result) if grouped else result

    @staticmethod
    def backward(ctx, *gradients):
        gathered = _AllGather.apply(*(ctx.rest + gradients))
        return (None,) * 6 + tuple(gradient * ctx.factor for gradient in gathered)


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Reduces `tensor` over all ranks into a new one; see ops.allreduce_async. `compression`: how it travels."""
    op = ops.reduce_op(op, average)
    compressed, context = compression.compress(tensor)
    reduced = _AllReduce.apply(False, name, op, prescale_factor, postscale_factor, process_set, compressed)
    return compression.decompress(reduced, context)


def grouped_allreduce(
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Reduces several tensors together; returns a list of new ones."""
    op = ops.reduce_op(op, average)
    pairs = [compression.compress(tensor) for tensor in tensors]
    compressed = [tensor for tensor, _ in pairs]
    reduced = _AllReduce.apply(True, name, op, prescale_factor, postscale_factor, process_set, *compressed)
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(reduced, pairs)]


def allgather(tensor, name=None, process_set=global_process_set):
    """Joins all ranks' tensors along the first dimension; see ops.allgather_async."""
    return _AllGather.apply(False, name, process_set, tensor)[0]


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """As allgather for several tensors; returns a list."""
    return list(_AllGather.apply(True, name, process_set, *tensors))


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """The tensor of rank `root_rank`, on all ranks; see ops.broadcast_async."""
    return _Broadcast.apply(tensor, root_rank, name, process_set)


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends rows of `tensor` to all ranks; see ops.alltoall_async. With `splits` it returns the rows that came and how
    many came from each rank, without them the rows alone."""
    received, received_splits = _AllToAll.apply(tensor, splits, name, process_set)
    return received if splits is None else (received, received_splits)


def reducescatter(
    tensor,
    name=None,
    compression=Compression.none,
    op=ops.Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Reduces `tensor` over all ranks, of which each gets a share of the rows; see ops.reducescatter_async."""
    compressed, context = compression.compress(tensor)
    share = _ReduceScatter.apply(False, name, op, process_set, prescale_factor, postscale_factor, compressed)
    return compression.decompress(share, context)


def grouped_reducescatter(
    tensors,
    name=None,
    compression=Compression.none,
    op=ops.Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """As reducescatter for several tensors; returns a list."""
    pairs = [compression.compress(tensor) for tensor in tensors]
    compressed = [tensor for tensor, _ in pairs]
    shares = _ReduceScatter.apply(True, name, op, process_set, prescale_factor, postscale_factor, *compressed)
    return [compression.decompress(tensor, context) for tensor, (_, context) in zip(shares, pairs)]
