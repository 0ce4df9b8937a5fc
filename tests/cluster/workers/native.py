"""The native library without a framework, which would take a second to import: what a worker of these tests needs."""

import ctypes

from farandole import _library, basics

SUM = 1


def allreduce(name, value, seconds):
    """The sum over all ranks of `value`. RuntimeError: what the library says; TimeoutError: not within `seconds`."""
    library = _library.load()
    number = ctypes.c_double(value)
    result = ctypes.c_double()
    requests = (_library.Request * 1)()
    request = requests[0]
    request.struct_size = ctypes.sizeof(request)
    request.kind = _library.ALLREDUCE
    request.name = name.encode()
    request.input = ctypes.addressof(number)
    request.output = ctypes.addressof(result)
    request.shape = (ctypes.c_int64 * 1)(1)
    request.dims = 1
    request.dtype = _library.FLOAT64
    request.op = SUM
    request.prescale = request.postscale = 1.0
    handle = ctypes.c_uint64()
    check(library, library.fdl_begin(requests, 1, ctypes.byref(handle)))
    try:
        check(library, library.fdl_wait(handle, seconds))
    finally:
        library.fdl_release(handle)
    return result.value


def check(library, code):
    if code != 0:
        raise RuntimeError(_library.last_error(library))


__all__ = ["allreduce", "basics"]
