"""The native library: found and loaded at the first call that needs it, its functions declared for ctypes.

It is `_native/libfarandole.so` beside this package, or the file that FARANDOLE_LIBRARY names.
"""

import ctypes
import os
import threading

ABI_VERSION = 1

# fdl_dtype
UINT8, INT8, UINT16, INT16, INT32, INT64, FLOAT16, FLOAT32, FLOAT64, BOOL, BFLOAT16 = range(11)

# fdl_kind
ALLREDUCE, ALLGATHER, BROADCAST, JOIN, ALLTOALL, BARRIER, REDUCESCATTER = 0, 1, 2, 3, 5, 6, 7

_lock = threading.Lock()
_library = None


class Request(ctypes.Structure):
    """fdl_request"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("process_set", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("dims", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("op", ctypes.c_int32),
        ("peer", ctypes.c_int32),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
        ("splits", ctypes.POINTER(ctypes.c_int64)),
        ("splits_count", ctypes.c_int32),
        ("priority", ctypes.c_int32),
    ]


class ResultInfo(ctypes.Structure):
    """fdl_result_info"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_int64),
        ("rows", ctypes.POINTER(ctypes.c_int64)),
        ("rows_count", ctypes.c_int32),
        ("last_joined", ctypes.c_int32),
    ]


class InitArgs(ctypes.Structure):
    """fdl_init_args"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("timeout_seconds", ctypes.c_double)]


_HANDLE = ctypes.c_uint64
_NUMBERS = ctypes.POINTER(ctypes.c_int32)
_PLACES = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size", "is_homogeneous")

# Name: (result, arguments).
_FUNCTIONS = {
    "fdl_abi_version": (ctypes.c_int32, []),
    "fdl_version": (ctypes.c_char_p, []),
    "fdl_last_error": (ctypes.c_char_p, []),
    "fdl_init": (ctypes.c_int, [ctypes.POINTER(InitArgs)]),
    "fdl_shutdown": (ctypes.c_int, []),
    "fdl_is_initialized": (ctypes.c_int32, []),
    "fdl_begin": (ctypes.c_int, [ctypes.POINTER(Request), ctypes.c_int32, ctypes.POINTER(_HANDLE)]),
    "fdl_result": (ctypes.c_int, [_HANDLE, ctypes.POINTER(ResultInfo)]),
    "fdl_add_process_set": (ctypes.c_int, [_NUMBERS, ctypes.c_int32, ctypes.c_double, _NUMBERS]),
    "fdl_remove_process_set": (ctypes.c_int, [ctypes.c_int32, ctypes.c_double]),
    "fdl_process_set_ranks": (ctypes.c_int32, [ctypes.c_int32, _NUMBERS, ctypes.c_int32]),
    "fdl_process_set_ids": (ctypes.c_int32, [_NUMBERS, ctypes.c_int32]),
    "fdl_poll": (ctypes.c_int32, [_HANDLE]),
    "fdl_wait": (ctypes.c_int, [_HANDLE, ctypes.c_double]),
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
