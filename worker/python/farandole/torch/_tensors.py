"""How a torch tensor crosses the C interface: as an address in host memory, a shape and a type."""

import ctypes

import torch

from farandole import _library

# The types that the native library knows and reduces.
_NATIVE = {
    "bool": _library.BOOL,
    "uint8": _library.UINT8,
    "int8": _library.INT8,
    "uint16": _library.UINT16,
    "int16": _library.INT16,
    "int32": _library.INT32,
    "int64": _library.INT64,
    "float16": _library.FLOAT16,
    "bfloat16": _library.BFLOAT16,
    "float32": _library.FLOAT32,
    "float64": _library.FLOAT64,
}
_NATIVE = {getattr(torch, name): number for name, number in _NATIVE.items() if hasattr(torch, name)}

# Other types are only moved: as bytes, with these dimensions behind the tensor's own. Their product is the type's
# size, and no two types have the same, so that ranks which disagree about the type are told.
_AS_BYTES = {
    "uint32": (4,),
    "uint64": (8, 1),
    "complex64": (8,),
    "complex128": (16,),
    "float8_e4m3fn": (1, 1, 1),
    "float8_e5m2": (1, 1, 1, 1),
}
_AS_BYTES = {getattr(torch, name): dims for name, dims in _AS_BYTES.items() if hasattr(torch, name)}


def check(tensor, reduce):
    """ValueError unless `tensor` is a dense one of a type that can be reduced, or only moved when `reduce` is False."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError("a tensor is expected, not %s" % type(tensor).__name__)
    known = tensor.dtype in _NATIVE or (not reduce and tensor.dtype in _AS_BYTES)
    if not known or tensor.layout != torch.strided:
        raise ValueError("Tensor type %s is not supported." % tensor.type())


def on_host(tensor):
    """`tensor` without its history, or a copy of it where it is not C-contiguous in host memory already."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor.contiguous()


def describe(record, source, target):
    """Fills the tensor of `record`, a _library.Request, for `source` and `target`, which are as on_host returns them; `target` may be
    None.

    Returns what must stay alive for the call.
    """
    dims = tuple(source.shape) + _AS_BYTES.get(source.dtype, ())
    shape = (ctypes.c_int64 * len(dims))(*dims)
    record.input = source.data_ptr()
    record.output = None if target is None else target.data_ptr()
    record.shape = shape
    record.dims = len(dims)
    record.dtype = _NATIVE.get(source.dtype, _library.UINT8)
    return shape


def give_back(tensor, host):
    """Writes `host` into `tensor` where it is another memory. Returns `tensor`."""
    if host.data_ptr() != tensor.data_ptr() or host.device != tensor.device:
        tensor.detach().copy_(host)
    return tensor


def gathered(source, address, size, first_dims):
    """A new tensor with the `size` bytes at `address`, typed and shaped like `source` apart from the first
    dimension."""
    result = torch.empty((sum(first_dims),) + tuple(source.shape[1:]), dtype=source.dtype)
    expected = result.numel() * result.element_size()
    if expected != size:
        raise AssertionError("an operation brought %d bytes instead of %d" % (size, expected))
    if size:
        ctypes.memmove(result.data_ptr(), address, size)
    return result
