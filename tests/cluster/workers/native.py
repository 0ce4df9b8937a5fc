"""The native library without a framework, which would take a second to import: what a worker of these tests needs."""

import ctypes

from farandole import _library, basics

SUM = 1


def allreduce(name, value, seconds):
    """The sum over all ranks of `value`. RuntimeError: what the library says; TimeoutError: not within `seconds`."""
    library = _library.load()
    number = ctypes.c_double(value)
    result = ctypes.c_double()
    tensor = _library.Tensor()
    tensor.struct_size = ctypes.sizeof(tensor)
    tensor.input = ctypes.addressof(number)
    tensor.output = ctypes.addressof(result)
    shape = (ctypes.c_int64 * 1)(1)
    tensor.shape = shape
    tensor.dims = 1
    tensor.dtype = _library.FLOAT64
    arguments = _library.ReduceArgs(ctypes.sizeof(_library.ReduceArgs), SUM, 1.0, 1.0)
    handle = ctypes.c_uint64()
    check(library, library.fdl_allreduce(name.encode(), tensor, arguments, ctypes.byref(handle)))
    try:
        check(library, library.fdl_wait(handle, seconds))
    finally:
        library.fdl_release(handle)
    return result.value


def check(library, code):
    if code != 0:
        raise RuntimeError(_library.last_error(library))


__all__ = ["allreduce", "basics"]
