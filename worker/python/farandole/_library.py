"""The native library: found and loaded at the first call that needs it, its functions declared for ctypes.

It is `_native/libfarandole.so` beside this package, or the file that FARANDOLE_LIBRARY names.
"""

import ctypes
import os
import threading

ABI_VERSION = 1

# fdl_dtype
UINT8, INT32, INT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16 = 0, 4, 5, 6, 7, 8, 10

_lock = threading.Lock()
_library = None


class Tensor(ctypes.Structure):
    """fdl_tensor"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("dims", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class ReduceArgs(ctypes.Structure):
    """fdl_reduce_args"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("op", ctypes.c_int32),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
    ]


class InitArgs(ctypes.Structure):
    """fdl_init_args"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("timeout_seconds", ctypes.c_double)]


_HANDLE = ctypes.c_uint64
_TENSOR = ctypes.POINTER(Tensor)
_REDUCE_ARGS = ctypes.POINTER(ReduceArgs)
_PLACES = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "is_homogeneous")

# Name: (result, arguments).
_FUNCTIONS = {
    "fdl_abi_version": (ctypes.c_int32, []),
    "fdl_version": (ctypes.c_char_p, []),
    "fdl_last_error": (ctypes.c_char_p, []),
    "fdl_init": (ctypes.c_int, [ctypes.POINTER(InitArgs)]),
    "fdl_shutdown": (ctypes.c_int, []),
    "fdl_is_initialized": (ctypes.c_int32, []),
    "fdl_allreduce": (ctypes.c_int, [ctypes.c_char_p, _TENSOR, _REDUCE_ARGS, ctypes.POINTER(_HANDLE)]),
    "fdl_grouped_allreduce": (
        ctypes.c_int,
        [ctypes.POINTER(ctypes.c_char_p), _TENSOR, ctypes.c_int32, _REDUCE_ARGS, ctypes.POINTER(_HANDLE)],
    ),
    "fdl_allgather": (ctypes.c_int, [ctypes.c_char_p, _TENSOR, ctypes.POINTER(_HANDLE)]),
    "fdl_broadcast": (ctypes.c_int, [ctypes.c_char_p, _TENSOR, ctypes.c_int32, ctypes.POINTER(_HANDLE)]),
    "fdl_barrier": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(_HANDLE)]),
    "fdl_poll": (ctypes.c_int32, [_HANDLE]),
    "fdl_wait": (ctypes.c_int, [_HANDLE, ctypes.c_double]),
    "fdl_gathered": (
        ctypes.c_int,
        [
            _HANDLE,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_int64),
            ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)),
        ],
    ),
    "fdl_release": (ctypes.c_int, [_HANDLE]),
}
_FUNCTIONS.update({"fdl_" + place: (ctypes.c_int32, []) for place in _PLACES})


def path():
    """The file that load() opens."""
    named = os.environ.get("FARANDOLE_LIBRARY")
    return named or os.path.join(os.path.dirname(os.path.abspath(__file__)), "_native", "libfarandole.so")


def loaded():
    """The library if load() has been called with success, else None."""
    return _library


def load():
    """The library; opened at the first call. ImportError: it cannot be, with the loader's own words."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _open(path())
    return _library


def _open(file):
    try:
        library = ctypes.CDLL(file)
    except OSError as error:
        raise ImportError("the native library of farandole cannot be loaded: %s" % error) from error
    try:
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except AttributeError as error:
        raise ImportError("%s is not the library of this farandole: %s" % (file, error)) from error
    version = library.fdl_abi_version()
    if version != ABI_VERSION:
        raise ImportError(
            "%s (farandole %s) has version %d of the C interface, and this package speaks version %d: both must come "
            "from one build" % (file, library.fdl_version().decode(), version, ABI_VERSION)
        )
    return library


def last_error(library):
    """Why the last call on this thread failed, in words."""
    return library.fdl_last_error().decode(errors="replace")
