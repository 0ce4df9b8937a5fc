"""How an operation on tensors becomes requests to the native library, and its results tensors again."""

import ctypes

import torch

from farandole import _handles, _library, basics, errors
from farandole.process_sets import number_of
from farandole.torch import _tensors


class Call(object):
    """One call on its way to the native library: its number, wire name, and what it gives out."""

    def __init__(self, kind, name, process_set):
        self.library = basics.need_library()
        self.number = _handles.take()
        self.process_set = process_set
        self._set_number = number_of(process_set)
        self.name = "%s.%s" % (kind, "noname.%d" % self.number if name is None else name)

    def names(self, grouped, count):
        """The wire names of the members of a group, or of the only one."""
        if not grouped:
            return [self.name.encode()]
        return [("%s_%dof%d" % (self.name, i + 1, count)).encode() for i in range(count)]

    def begin(self, requests, keep, finish):
        """Begins the operations that `requests` (an array of _library.Request) describe, as a group; returns the number
        of the call, the handle. keep, finish: see _handles.Operation."""
        count = len(requests)
        native = (ctypes.c_uint64 * count)()
        for request in requests:
            request.struct_size = ctypes.sizeof(_library.Request)
            request.process_set = self._set_number
        if count:
            self._check(self.library.fdl_begin(requests, count, native))
        _handles.put(self.number, _handles.Operation(self.library, list(native), keep, finish))
        return self.number

    def _check(self, code):
        if code == errors.OK:
            return
        message = _library.last_error(self.library)
        basics.need_library()  # it may have been shut down in this moment
        raise errors.exception(code, message)


def _describe(kind, names, sources, targets):
    """An array of requests for tensors that are as _tensors.on_host returns them, and what must stay alive for the
    call."""
    requests = (_library.Request * len(sources))()
    shapes = []
    for request, name, source, target in zip(requests, names, sources, targets):
        request.kind = kind
        request.name = name
        shapes.append(_tensors.describe(request, source, target))
    return requests, shapes


def _reduces(requests, reduction):
    op, prescale, postscale = reduction
    for request in requests:
        request.op, request.prescale, request.postscale = op, float(prescale), float(postscale)


def _check_all(tensors, reduce, rows=False):
    for tensor in tensors:
        _tensors.check(tensor, reduce=reduce)
        if rows and tensor.dim() == 0:
            raise ValueError(
                "this operation is along the first dimension of tensors, and a scalar has none; use tensor.reshape(1)"
            )


def allreduce(call, grouped, tensors, in_place, reduction):
    """reduction: (op, prescale, postscale)."""
    _check_all(tensors, reduce=True)
    if len({tensor.device for tensor in tensors}) > 1:
        raise ValueError("Tensors in list must be on same device.")
    sources = [_tensors.on_host(tensor) for tensor in tensors]
    targets = sources if in_place else [torch.empty_like(source) for source in sources]
    requests, _shapes = _describe(_library.ALLREDUCE, call.names(grouped, len(tensors)), sources, targets)
    _reduces(requests, reduction)

    def finish(_):
        if in_place:
            results = [_tensors.give_back(*item) for item in zip(tensors, targets)]
        else:
            results = [target.to(tensor.device) for tensor, target in zip(tensors, targets)]
        return results if grouped else results[0]

    return call.begin(requests, (tensors, sources, targets), finish)


def allgather(call, grouped, tensors, unpack):
    """unpack: of a list of (tensor, first dimension of every rank)."""
    _check_all(tensors, reduce=False, rows=True)
    sources = [_tensors.on_host(tensor) for tensor in tensors]
    requests, _shapes = _describe(
        _library.ALLGATHER, call.names(grouped, len(tensors)), sources, [None] * len(tensors)
    )

    def finish(operation):
        results = []
        for part, (tensor, source) in enumerate(zip(tensors, sources)):
            address, size, rows, _ = operation.result(part)
            results.append((_tensors.gathered(source, address, size, rows).to(tensor.device), rows))
        return unpack(results)

    return call.begin(requests, (tensors, sources), finish)


def broadcast(call, tensor, in_place, root_rank):
    _check_all([tensor], reduce=False)
    source = _tensors.on_host(tensor)
    target = source if in_place else torch.empty_like(source)
    requests, _shapes = _describe(_library.BROADCAST, [call.name.encode()], [source], [target])
    requests[0].peer = int(root_rank)

    def finish(_):
        return _tensors.give_back(tensor, target) if in_place else target.to(tensor.device)

    return call.begin(requests, (tensor, source, target), finish)


def alltoall(call, tensor, splits):
    """splits: None, a list, or a tensor of ints."""
    _check_all([tensor], reduce=False, rows=True)
    source = _tensors.on_host(tensor)
    requests, _shapes = _describe(_library.ALLTOALL, [call.name.encode()], [source], [None])
    device = splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu")
    if splits is not None:
        numbers = splits.tolist() if isinstance(splits, torch.Tensor) else list(splits)
        if not all(isinstance(number, int) for number in numbers):
            raise ValueError("splits of an alltoall are one-dimensional ints, not %r" % (splits,))
        array = (ctypes.c_int64 * len(numbers))(*numbers)
        requests[0].splits = array
        requests[0].splits_count = len(numbers)

    def finish(operation):
        address, size, rows, _ = operation.result(0)
        received = _tensors.gathered(source, address, size, rows).to(tensor.device)
        return received, torch.tensor(rows, dtype=torch.int32, device=device)

    return call.begin(requests, (tensor, source), finish)


def reducescatter(call, grouped, tensors, reduction):
    """reduction: (op, prescale, postscale)."""
    _check_all(tensors, reduce=True, rows=True)
    sources = [_tensors.on_host(tensor) for tensor in tensors]
    requests, _shapes = _describe(
        _library.REDUCESCATTER, call.names(grouped, len(tensors)), sources, [None] * len(tensors)
    )
    _reduces(requests, reduction)

    def finish(operation):
        results = []
        for part, (tensor, source) in enumerate(zip(tensors, sources)):
            address, size, rows, _ = operation.result(part)
            share = rows[call.process_set.rank()]
            results.append(_tensors.gathered(source, address, size, [share]).to(tensor.device))
        return results if grouped else results[0]

    return call.begin(requests, (tensors, sources), finish)


def barrier(call):
    requests = (_library.Request * 1)()
    requests[0].kind = _library.BARRIER
    requests[0].name = b"barrier.noname"
    return call.begin(requests, None, lambda _: None)


def join(call):
    requests = (_library.Request * 1)()
    requests[0].kind = _library.JOIN
    return call.begin(requests, None, lambda operation: operation.result(0)[3])
